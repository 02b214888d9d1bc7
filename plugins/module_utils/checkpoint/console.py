# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Reports as text for a person at a console: the verdict first, then the faults, then the claims, then what to do."""

from __future__ import annotations

import typing as t

from .diagnosis import FAULTY, REFUSED, SOUND
from .faults import counted, releases_text
from .formats import UNIVERSAL

Json = t.Mapping[str, t.Any]
_MARKS = {"error": "ERROR", "warning": "WARN ", "info": "info "}
_MOST = 20
"""Claims and steps listed in full; a file may hold thousands. ``--all`` lists every claim, JSON has everything."""


def inspection(report: Json, everything: bool = False) -> str:
    """A report of `statefile.inspect`."""
    if "reading" in report:
        return _other(report)
    lines = [str(report["file"]), *_summary(report), ""]
    lines += _faults(report["faults"], everything)
    lines += _claims(report["claims"], everything)
    lines += _next_step(report)
    return "\n".join(map(visible, lines)) + "\n"


def _other(report: Json) -> str:
    """A report on a file of another kind: what it is, its faults, and the claims in it."""
    words = {SOUND: "SOUND", FAULTY: "FAULTY", REFUSED: "REFUSED by every version of its reader that is known"}
    lines = [str(report["file"]), f"  status    {words[report['status']]}"]
    lines += [
        f"  kind      {report['kind']}, {report['reading']['layout'] or 'unknown layout'}, {report['size']} bytes",
        "",
    ]
    lines += _faults(report["faults"], everything=True)
    for claim in report["claims"]:
        lines.append(visible(f"  claim {claim['namespace']}/{claim['name']} {claim['uid']} {claim['state']}"))
    return "\n".join(map(visible, lines)) + "\n"


def _summary(report: Json) -> t.Iterator[str]:
    release = report["target_version"]
    who = f"the kubelet of {release}" if release else "its kubelets"
    words = {
        SOUND: f"SOUND: {who} start{'s' if release else ''} with this file",
        FAULTY: f"FAULTY: {who} start{'s' if release else ''} with this file, but it has faults",
        REFUSED: f"REFUSED: {who} do{'es' if release else ''} not start with this file",
    }
    if not report["exists"]:
        words[FAULTY] = words[SOUND] = "MISSING: there is no such file"
    yield f"  status    {words[report['status']]}"
    written = f" (Kubernetes {releases_text(report['written_by'])})" if report["written_by"] else ""
    name = UNIVERSAL if report["universal"] else f"{report['format'] or 'unknown'}{written}"
    yield f"  format    {name}, {report['size']} bytes"
    yield f"  read by   {releases_text(report['readable_by']) or 'no release'}"
    checksum = report["checksum"]
    if checksum["stored"] is not None:
        state = "ok" if checksum["ok"] else f"WRONG, the data gives {checksum['computed']}"
        yield f"  checksum  {checksum['stored']} ({state})"
    if report["claims_in_file"] is not None:
        yield f"  claims    {report['claims_in_file']}"
    elif report["exists"]:
        cut = report["claims_broken"]
        broken = f", {cut} more {'is' if cut == 1 else 'are'} cut" if cut else ""
        yield f"  claims    {report['claims_saved']} can be saved{broken}"
    if report["kubelet"]:
        yield f"  kubelet   pid {report['kubelet']['pid']} runs on {report['kubelet_root']}"


def _faults(faults: t.Sequence[Json], everything: bool) -> t.Iterator[str]:
    if not faults:
        return
    yield "Faults"
    shown: dict[str, int] = {}
    for item in faults:
        shown[item["code"]] = shown.get(item["code"], 0) + 1
        if not everything and shown[item["code"]] > 5:
            continue
        at = f" at {item['place']}" if item["place"] else ""
        yield f"  {_MARKS[item['severity']]} {item['code']}{at}"
        yield f"        {item['text']}"
        for effect in item.get("kubelets", ()):
            yield f"        Kubelet ({effect['releases']}): {effect['effect']}."
        if item.get("repair"):
            loses = f"; may lose {item['loses']}" if item["loses"] else "; loses nothing"
            yield f"        Repair: {item['repair']}{loses}."
        elif item["remedy"]:
            yield f"        {item['remedy']}"
    for code, count in shown.items():
        if not everything and count > 5:
            yield f"  ... and {count - 5} more {code} (--all lists them)"
    yield ""


def _claims(claims: t.Sequence[Json], everything: bool) -> t.Iterator[str]:
    if not claims:
        return
    rows = [("CLAIM", "UID", "PODS", "DRIVERS", "DEVICES")]
    for claim in claims if everything else claims[:_MOST]:
        devices = [device for driver in claim["drivers"] for device in driver["devices"] or ()]
        names = ", ".join(_device(device) for device in devices)
        drivers = ", ".join(driver["name"] for driver in claim["drivers"])
        pods = "null" if claim["pods"] is None else str(len(claim["pods"]))
        rows.append((f"{claim['namespace']}/{claim['name']}", claim["uid"], pods, drivers or "-", names or "-"))
    yield from table(rows)
    if len(claims) > _MOST and not everything:
        yield f"... and {len(claims) - _MOST} more claims (--all lists them)"
    yield ""


def _device(device: Json) -> str:
    if device["device"]:
        return f"{device['pool']}/{device['device']}"
    return ", ".join(device["cdi_devices"]) or "(unnamed)"


def table(rows: t.Sequence[t.Sequence[str]]) -> t.Iterator[str]:
    """Rows in columns as wide as their widest cell, control characters made visible."""
    clean = [[visible(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in clean) for column in range(len(clean[0]))]
    for row in clean:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()


def visible(text: str) -> str:
    """Text that cannot move the cursor or colour the screen: names come from files that anything may have written."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def _next_step(report: Json) -> t.Iterator[str]:
    repair = report["repair"]
    if not repair["possible"]:
        yield f"A repair is not possible: {repair['reason']}"
        return
    if not repair["changed"]:
        return
    yield f"A repair would keep {counted(repair['claims'], 'claim')}:"
    steps: t.Sequence[Json] = repair["steps"]
    for step in steps[:_MOST]:
        at = f" at {step['place']}" if step["place"] else ""
        yield f"  {step['action']}{at}" + (f", loses {step['loses']}" if step["loses"] else "")
    if len(steps) > _MOST:
        yield f"  ... and {len(steps) - _MOST} more"
    if report["kubelet"]:
        yield f"First stop the kubelet. {report['kubelet']['how_to_stop']}"
    yield f"Next: repair {report['file']}"


def change(result: Json, check: bool) -> str:
    """A result of `statefile.change`."""
    before = counted(result["claims_before"], "claim")
    if not result["changed"]:
        lines = [f"{result['file']}: nothing to do, {before}."]
        if result.get("restored_from", "") is None:
            lines.append("The file is good as it is. To go back all the same, name a copy (--from).")
        return "\n".join(map(visible, lines)) + "\n"
    verb = "would be changed" if check else "changed"
    lines = [f"{result['file']}: {verb}, {before} before, {result['claims_after']} after."]
    if result["format"]:
        lines.append(f"  format    {result['format']}")
    if result.get("restored_from"):
        lines.append(f"  from      {result['restored_from']}")
    for step in result["steps"][:_MOST]:
        lines.append(f"  {step['action']}: {step['text']}")
        if step["loses"]:
            lines.append(f"      loses {step['loses']}")
    if len(result["steps"]) > _MOST:
        lines.append(f"  ... and {len(result['steps']) - _MOST} more (--output json has them all)")
    if result["backup_file"]:
        lines.append(f"  backup    {result['backup_file']}")
    return "\n".join(map(visible, lines)) + "\n"
