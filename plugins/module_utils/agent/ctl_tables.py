# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What ``ctl`` shows to people: a table for each question, a sentence where there is nothing."""

from __future__ import annotations

import time
import typing as t

from ..checkpoint.console import visible

Json = t.Mapping[str, t.Any]


def table(head: t.Sequence[str], rows: t.Sequence[t.Sequence[str]], nothing: str) -> str:
    """Columns side by side; ``nothing`` instead of a table without rows. Names with odd characters are escaped."""
    if not rows:
        return nothing + "\n"
    cells = [[visible(cell) or "-" for cell in row] for row in (head, *rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in cells]
    return "\n".join(lines) + "\n"


def claims_text(claims: t.Sequence[Json]) -> str:
    """Recorded claims, and below the table what keeps failing."""
    rows = [
        [
            f"{claim['namespace']}/{claim['name']}",
            claim["uid"],
            claim.get("status") or ("prepared" if claim["prepared"] else "not prepared"),
            ",".join(driver["name"] for driver in claim["drivers"]),
            ",".join(claim["cdi_devices"]),
            ",".join(claim["pods"]),
        ]
        for claim in claims
    ]
    text = table(["CLAIM", "UID", "STATUS", "DRIVERS", "CDI DEVICES", "HELD BY"], rows, "No claims are recorded.")
    for claim in claims:
        for failure in claim.get("failures", ()):
            text += visible(
                f"{claim['namespace']}/{claim['name']}: {failure['operation']} failed {failure['count']} times since "
                f"{moment(failure['first'])}, next try in {failure['retry_in']:.0f} s: {failure['text']}"
            )
            text += "\n"
        if claim.get("stopped"):
            text += visible(f"{claim['namespace']}/{claim['name']}: retries were stopped: {claim['stopped']}") + "\n"
    return text


def drivers_text(found: Json) -> str:
    """Drivers with an instance a line, then sockets that are not through."""
    rows = []
    for driver in found["drivers"]:
        for one in driver["instances"]:
            state = "connected" if one["connected"] else "not connected"
            rows.append([driver["name"], state, str(driver["claims"]), one["service"], one["endpoint"]])
    text = table(["DRIVER", "STATE", "CLAIMS", "SERVICE", "SOCKET"], rows, "No driver is registered.")
    for one in found["registrations"]:
        if one["state"] not in ("registered", "foreign"):
            text += visible(f"{one['socket']}: {one['state']}: {one['error'] or 'not answered yet'}") + "\n"
    return text


def findings_text(findings: t.Sequence[Json]) -> str:
    """Findings, two lines each."""
    if not findings:
        return "All is as it should be.\n"
    lines = []
    for one in findings:
        lines += [f"{one['severity'].upper()} {one['code']}: {one['text']}", f"  {one['remedy']}"]
    return "\n".join(visible(line).rstrip() for line in lines if line.strip()) + "\n"


def version_text(version: Json) -> str:
    """Who answers, one line for each thing that it says of itself."""
    lines = []
    for name, value in sorted(version.items()):
        text = ", ".join(value) if isinstance(value, list) else str(value)
        if text:
            lines.append(f"{name.replace('_', ' ')}: {text}")
    return "\n".join(visible(line) for line in lines) + "\n"


def change_text(result: Json, check: bool) -> str:
    """What a change did, or would do."""
    lines = []
    would = "would call" if check else "called"
    for call in result["calls"]:
        lines.append(f"{would} {call['method']} of {call['driver']} for {', '.join(call['claims'])}")
    if result["released"]:
        lines.append(f"{'would release' if check else 'released'} {', '.join(result['released'])}")
    for one in result["forgotten"]:
        lines += [f"forgotten {one['namespace']}/{one['name']} ({one['claim_uid']})", *one["may_leak"]]
    if not result["changed"]:
        lines.append("nothing has to change" if check else "nothing has changed")
    text = "".join(f"{visible(line)}\n" for line in lines)
    if result["claims"]:
        text += claims_text(result["claims"])
    return text + (findings_text(result["findings"]) if result["findings"] else "")


def resources_text(containers: t.Mapping[str, t.Sequence[str]]) -> str:
    """CDI names by container."""
    rows = [[name, ",".join(devices)] for name, devices in containers.items()]
    return table(["CONTAINER", "CDI DEVICES"], rows, "The pod has no containers.")


def event_text(event: Json) -> str:
    """One event in one line."""
    parts = [str(event["number"]), moment(event["at"]), event["kind"], event["subject"], event["text"]]
    return visible(" ".join(part for part in parts if part)) + "\n"


def moment(seconds: float) -> str:
    """Wall time as people and programs read it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
