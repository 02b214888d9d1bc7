# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""One node as the modules see it: directories, simulated drivers on real sockets, a kubelet's file, the modules' calls.

Runs on Python 3.9 too, as far as no driver is asked.
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import typing as t

from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.claims import ClaimState, Device, assemble, encode

if t.TYPE_CHECKING:
    from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_request import ClaimRequest
    from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import SimulatedDriver

Json = dict[str, t.Any]
GPU = "gpu.test.example"


class Node:
    """``root`` is the kubelet's root directory; everything of the node is below it."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.cdi = root / "cdi"
        self.state_directory = root / "manager"
        self.registry = root / "plugins_registry"
        self.registry.mkdir()

    # Drivers and files

    def driver(self, name: str = GPU, *faults: str, **config: t.Any) -> SimulatedDriver:
        """A driver that is not started yet; use it as an async context manager."""
        from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.driver import DriverConfig, SimulatedDriver

        made = SimulatedDriver(DriverConfig(name, self.root, self.cdi, **config))
        for fault in faults:
            made.faults.add(fault)
        return made

    def kubelet_has(self, *claims: ClaimState) -> pathlib.Path:
        """Write the kubelet's state file."""
        path = self.root / "dra_manager_state"
        path.write_bytes(assemble([encode(claim) for claim in claims]))
        return path

    def manager_has(self, *claims: ClaimState) -> pathlib.Path:
        """Write the state file of our manager, without notes, as after a reboot."""
        self.state_directory.mkdir(exist_ok=True)
        path = self.state_directory / "dra_manager_state"
        path.write_bytes(assemble([encode(claim) for claim in claims]))
        return path

    def driver_has(self, *uids: str, driver: str = GPU) -> pathlib.Path:
        """Write the file that a driver of the example driver's kind keeps for itself."""
        folder = self.root / "plugins" / driver
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "checkpoint.json"
        head = {"kind": "Checkpoint", "apiVersion": "checkpoint.internal.example.com/v1"}
        path.write_text(json.dumps({**head, "preparedClaims": [{"uid": uid} for uid in uids]}), encoding="utf-8")
        return path

    def spec(self, uid: str, *devices: str, driver: str = GPU) -> pathlib.Path:
        """Write a CDI spec file as the simulated driver does."""
        self.cdi.mkdir(exist_ok=True)
        path = self.cdi / f"k8s.{driver}-claim_{uid}.json"
        entries = [{"name": f"{uid}-{device}", "containerEdits": {"env": ["A=b"]}} for device in devices or ("dev-0",)]
        spec = {"cdiVersion": "0.5.0", "kind": f"k8s.{driver}/claim", "devices": entries}
        path.write_text(json.dumps(spec), encoding="utf-8")
        return path

    def tree(self) -> dict[str, str]:
        """Every file with a digest of its content, every directory and socket."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "-"
            found[str(path.relative_to(self.root))] = digest
        return found

    # What the modules do

    def request(self, state: str, *claims: Json, **changes: t.Any) -> ClaimRequest:
        """What a task of nodeops.dra.claim asks for."""
        from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_request import ClaimRequest

        fields: Json = {
            "state_directory": str(self.state_directory),
            "kubelet_root": str(self.root),
            "cdi_directories": (str(self.cdi),),
            "timeout": 10.0,
            "by": "a test",
            **changes,
        }
        return ClaimRequest(state, claims=claims, **fields)

    async def claim(self, state: str, *claims: Json, check: bool = False, **changes: t.Any) -> Json:
        """What nodeops.dra.claim returns."""
        from ansible_collections.nodeops.dra.plugins.module_utils.agent.claim_task import perform

        return await perform(self.request(state, *claims, **changes), {}, check=check)

    def look(self, **changes: t.Any) -> Json:
        """What nodeops.dra.claim_info returns without asking drivers and the API."""
        from ansible_collections.nodeops.dra.plugins.module_utils.agent.sources import read_sources
        from ansible_collections.nodeops.dra.plugins.module_utils.agent.survey import survey

        sources = read_sources(
            state_directory=str(self.state_directory), kubelet_root=str(self.root), cdi_directories=[str(self.cdi)]
        )
        for name, value in changes.items():
            setattr(sources, name, value)
        return survey(sources)


def recorded(
    uid: str = "u-1",
    name: str = "c1",
    *devices: str,
    pods: t.Iterable[str] = ("p-1",),
    driver: str = GPU,
    share_id: str | None = None,
) -> ClaimState:
    """A claim in a state file, with devices of pool-0 and the CDI names that the simulated driver gives them."""
    made = tuple(
        Device("pool-0", device, ("r0",), (f"k8s.{driver}/claim={uid}-{device}",), share_id)
        for device in devices or ("dev-0",)
    )
    return ClaimState(uid, name, "team-a", frozenset(pods), {driver: made})


def codes(result: Json, uid: str = "") -> list[str]:
    """The codes of the findings, those of one claim if its UID is given."""
    if uid:
        return t.cast("list[str]", next(one for one in result["claims"] if one["uid"] == uid)["findings"])
    return sorted({finding["code"] for finding in result["findings"]})
