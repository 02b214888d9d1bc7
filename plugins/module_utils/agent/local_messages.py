# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Messages of the local API from what modules return, and back. Names of fields are those of the modules' results."""

from __future__ import annotations

import json
import typing as t

from ..wire.messages import Api, api
from .record_report import container_arguments

if t.TYPE_CHECKING:
    from google.protobuf.message import Message

    from ..wire import nodeops_dra_agent_v1_pb2 as pb

Json = dict[str, t.Any]

API = "nodeops/dra/agent/v1"


def agent_api() -> Api:
    """The messages and methods. Raises LibraryMissing."""
    return api(API)


def message(kind: str, /, **fields: t.Any) -> t.Any:
    """A message by its name. Fields may be messages, lists of them, and scalars."""
    return agent_api().message(kind)(**fields)


def plain(found: Message) -> Json:
    """A message as a dictionary with every field; JSON in it stays text."""
    from google.protobuf import json_format

    return json_format.MessageToDict(found, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


# Claims


def claim_message(report: Json, **more: t.Any) -> pb.Claim:
    """From what `record_report` gives."""
    drivers = [
        message(
            "ClaimDriver",
            name=driver["name"],
            answered=driver["devices"] is not None,
            devices=[message("Device", **device) for device in driver["devices"] or ()],
        )
        for driver in report["drivers"]
    ]
    names = ("uid", "name", "namespace", "pods", "prepared")
    return t.cast("pb.Claim", message("Claim", **{name: report[name] for name in names}, drivers=drivers, **more))


def claim_report(claim: pb.Claim) -> Json:
    """Back to what `record_report` gives."""
    drivers: list[Json] = [
        {"name": one.name, "devices": [_device(device) for device in one.devices] if one.answered else None}
        for one in claim.drivers
    ]
    return {
        "uid": claim.uid,
        "name": claim.name,
        "namespace": claim.namespace,
        "pods": list(claim.pods),
        "prepared": claim.prepared,
        "drivers": drivers,
        **container_arguments(drivers),
    }


def _device(device: pb.Device) -> Json:
    return {
        "pool": device.pool,
        "device": device.device,
        "share_id": device.share_id if device.HasField("share_id") else None,
        "requests": list(device.requests),
        "cdi_devices": list(device.cdi_devices),
    }


# Findings


def finding_message(finding: Json) -> pb.Finding:
    """From what `Finding.to_dict` gives."""
    facts = json.dumps(finding["facts"], default=str).encode()
    return t.cast("pb.Finding", message("Finding", **{**finding, "facts": facts}))


def finding_report(finding: pb.Finding) -> Json:
    """Back to what `Finding.to_dict` gives."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "place": finding.place,
        "text": finding.text,
        "remedy": finding.remedy,
        "facts": json.loads(finding.facts or b"{}"),
    }


# Changes


def change_response(result: Json) -> pb.ChangeResponse:
    """From what `claim_work.work` gives."""
    made = message(
        "ChangeResponse",
        changed=result["changed"],
        calls=[message("DriverCall", **call) for call in result["calls"]],
        claims=[claim_message(claim) for claim in result["claims"]],
        released=result["released"],
        forgotten=[json.dumps(one).encode() for one in result["forgotten"]],
        findings=[finding_message(finding) for finding in result["findings"]],
        before=json.dumps(result["before"]).encode(),
        after=json.dumps(result["after"]).encode(),
    )
    return t.cast("pb.ChangeResponse", made)


def change_result(response: pb.ChangeResponse) -> Json:
    """Back to what `claim_work.work` gives; ``via`` says that it came from the agent."""
    return {
        "changed": response.changed,
        "before": json.loads(response.before or b"{}"),
        "after": json.loads(response.after or b"{}"),
        "via": "agent",
        "calls": [
            {"driver": call.driver, "method": call.method, "claims": list(call.claims)} for call in response.calls
        ],
        "claims": [claim_report(claim) for claim in response.claims],
        "released": list(response.released),
        "forgotten": [json.loads(one) for one in response.forgotten],
        "conformance": [],
        "findings": [finding_report(finding) for finding in response.findings],
    }
