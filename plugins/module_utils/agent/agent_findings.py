# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What a running agent finds wrong with its own work: beside the manager's findings, what keeps failing."""

from __future__ import annotations

import time
import typing as t

from ..checkpoint.findings import Finding
from ..driver.status import RegistrationState
from .workplace import Workplace

CODES: t.Mapping[str, str] = {
    "operation_failing": "Preparing or unpreparing a claim fails again and again. The agent tries again by itself.",
    "api_not_followed": "The agent cannot read pods or claims from the API server. What is prepared stays so.",
    "container_file_foreign": "A file that the agent did not make has the name of one of its files for containers.",
    "container_files_not_written": "The files for containers of podman and systemd are not up to date.",
    "driver_not_registered": "A driver has a registration socket, but its registration fails.",
    "pod_health_denied": "The agent may not write the health of devices into the status of pods.",
    "pod_health_not_kept": "The API server takes the health of devices in the status of pods, and does not keep it.",
    "pod_health_overwritten": "Somebody, such as a kubelet, keeps taking the health of devices out of pods' status.",
    "ring_copy_damaged": "A copy of the kubelet's state file in the agent's ring has gone bad and is not used.",
    "ring_not_written": "The agent cannot keep copies of the kubelet's state file.",
}


def agent_findings(place: Workplace) -> list[Finding]:
    """All findings of an agent, those of the manager first."""
    found = list(place.manager.findings())
    for failure in place.manager.failures():
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(failure.first))
        text = (
            f"ResourceClaim {failure.claim}: {failure.operation} has failed {failure.count} times since {since}. "
            f"The last failure was: {failure.text}"
        )
        remedy = "Mend what the text says. The agent tries again, at once when the driver registers anew."
        place_text = f"{failure.claim} ({failure.claim_uid})"
        found.append(Finding("operation_failing", "error", place_text, text, remedy, failure.facts()))
    for status in place.registry.registrations():
        if status.state is RegistrationState.WAITING:
            facts = {"driver": status.driver, "attempts": status.attempts}
            remedy = "The agent tries again for as long as the socket is there; nodeops.dra.driver_info shows more."
            found.append(Finding("driver_not_registered", "error", status.socket, status.error, remedy, facts))
    for more in place.more_findings:
        found += more()
    return found
