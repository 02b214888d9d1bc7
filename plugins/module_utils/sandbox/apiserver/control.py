# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The remote control of the embedded API server: faults, rights, counts, compaction, under ``/sandbox/``."""

from __future__ import annotations

import dataclasses
import typing as t

from ...checkpoint.errors import DraError
from .cluster import Cluster
from .failures import bad_request, method_not_allowed, no_such_path
from .faults import Fault, Faults, fault_from, parse_fault
from .journal import Journal
from .json_text import Json
from .recorder import Recorder
from .rights import user_from

OPERATIONS = {
    "GET /sandbox/faults": "the faults that are set",
    "POST /sandbox/faults": "set faults: a text, an object, or a list of those",
    "DELETE /sandbox/faults": "clear all faults",
    "GET /sandbox/requests": "how many requests of which kind there were, and the last ones",
    "DELETE /sandbox/requests": "start counting anew",
    "GET /sandbox/journal": "who changed which object when",
    "POST /sandbox/compact": "forget the history (up to `version`): watches from before get 410",
    "POST /sandbox/rights": 'set a user: {"token": ..., "name": ..., "rules": [...]}',
    "GET /sandbox/state": "version counter and number of objects of each kind",
}


@dataclasses.dataclass
class Control:
    """What the end point may touch."""

    cluster: Cluster
    faults: Faults
    recorder: Recorder
    journal: Journal

    def set_faults(self, value: t.Any) -> list[Fault]:
        """Add faults from JSON. ApiError 400 when one cannot be read."""
        values = value if isinstance(value, list) else [value]
        try:
            made = [parse_fault(item) if isinstance(item, str) else fault_from(item) for item in values]
        except (DraError, TypeError) as error:
            raise bad_request(str(error)) from error
        return [self.add_fault(fault) for fault in made]

    def add_fault(self, fault: Fault) -> Fault:
        """Add one fault; stale lists show the state of this moment unless they name another version."""
        if fault.kind == "stale_list" and not fault.version:
            fault.version = self.cluster.store.version
        return self.faults.add(fault)

    def answer(self, method: str, path: str, value: t.Any) -> Json:
        """Carry out one operation. ApiError 404, 405 or 400."""
        known = {operation.partition(" ")[2] for operation in OPERATIONS}
        if path not in known:
            raise no_such_path()
        handlers: dict[str, t.Callable[[t.Any], Json]] = {
            "GET /sandbox/faults": lambda _value: self._faults(),
            "POST /sandbox/faults": self._post_faults,
            "DELETE /sandbox/faults": self._clear_faults,
            "GET /sandbox/requests": lambda _value: self._requests(),
            "DELETE /sandbox/requests": self._reset_requests,
            "GET /sandbox/journal": lambda _value: self._journal(),
            "POST /sandbox/compact": self._compact,
            "POST /sandbox/rights": self._rights,
            "GET /sandbox/state": lambda _value: self._state(),
        }
        handler = handlers.get(f"{method} {path}")
        if handler is None:
            raise method_not_allowed()
        return handler(value)

    def _faults(self) -> Json:
        return {"faults": [fault.described() for fault in self.faults.active]}

    def _post_faults(self, value: t.Any) -> Json:
        self.set_faults(value)
        return self._faults()

    def _clear_faults(self, _value: t.Any) -> Json:
        self.faults.clear()
        return self._faults()

    def _requests(self) -> Json:
        last = [dataclasses.asdict(seen) for seen in self.recorder.last]
        return {**self.recorder.described(), "last": last}

    def _reset_requests(self, _value: t.Any) -> Json:
        self.recorder.reset()
        return self.recorder.described()

    def _journal(self) -> Json:
        return {"entries": [dataclasses.asdict(entry) for entry in self.journal.entries()]}

    def _compact(self, value: t.Any) -> Json:
        version = value.get("version") if isinstance(value, dict) else None
        return {"compacted": self.cluster.store.compact(int(version) if version is not None else None)}

    def _rights(self, value: t.Any) -> Json:
        try:
            user = user_from(value)
            self.cluster.settings.tokens[str(value["token"])] = user
        except (TypeError, KeyError, AttributeError) as error:
            raise bad_request(f"a user needs token, name and rules: {error!r}") from error
        return {"name": user.name}

    def _state(self) -> Json:
        counts = {name: len(collection.records) for name, collection in self.cluster.store.collections.items()}
        return {"resourceVersion": str(self.cluster.store.version), "objects": counts}
