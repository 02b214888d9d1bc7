# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What the kubelet's state file says at one moment, judged once. Nothing here writes."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import typing as t

from ..checkpoint import store
from ..checkpoint.backups import source_path
from ..checkpoint.diagnosis import Diagnosis, diagnose
from ..checkpoint.file_errors import MissingFileError, StoreError
from ..checkpoint.kubelet_root import STATE_FILE_NAME
from ..checkpoint.report import claim_report
from ..checkpoint.restoring import why_not

Json = dict[str, t.Any]

MISSING, UNREADABLE = "missing", "unreadable"
"""States that are told beside those of a diagnosis (sound, faulty, refused)."""


@dataclasses.dataclass(frozen=True)
class KubeletState:
    """One content of the file.

    ``status`` is MISSING, UNREADABLE, or that of the diagnosis. ``problem`` says why this is no content to go back to,
    empty if it is one (or if there is no file). ``claims`` are the reports of the claims by UID; ``prepared`` in them
    says whether all drivers have answered. ``key`` is the same for contents that differ in the order of claims only.
    """

    path: str
    status: str = MISSING
    data: bytes | None = None
    diagnosis: Diagnosis | None = None
    error: StoreError | None = None
    problem: str = ""
    claims: t.Mapping[str, Json] = dataclasses.field(default_factory=dict)
    key: str = ""

    @property
    def good(self) -> bool:
        """Whether this is a content to go back to."""
        return self.data is not None and not self.problem


def state_path(kubelet_root: str) -> str:
    """The file, with its directory as it is without symbolic links."""
    return source_path(os.path.join(kubelet_root, STATE_FILE_NAME))


def look(path: str, before: KubeletState | None = None) -> KubeletState:
    """The file as it is now; ``before`` itself if nothing has changed since. Decodes only what is new. Blocks."""
    try:
        data = store.read_file(path, follow=True).data
    except MissingFileError:
        return before if before is not None and before.status == MISSING else KubeletState(path)
    except StoreError as error:
        same = before is not None and before.error is not None and before.error.message == error.message
        return before if before is not None and same else _unreadable(path, error)
    if before is not None and before.data == data:
        return before
    return judge(path, data)


def judge(path: str, data: bytes) -> KubeletState:
    """A content, diagnosed."""
    diagnosis = diagnose(data)
    claims = {entry.uid: _claim(entry) for entry in diagnosis.entries if entry.uid}
    problem = why_not(diagnosis)
    return KubeletState(path, diagnosis.status, data, diagnosis, None, problem, claims, content_key(diagnosis))


def content_key(diagnosis: Diagnosis) -> str:
    """The same for two contents of one format with the same claims: kubelets write them in random order."""
    digest = hashlib.sha256((diagnosis.format.name if diagnosis.format is not None else "").encode())
    for text in sorted(entry.text for entry in diagnosis.entries):
        digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _unreadable(path: str, error: StoreError) -> KubeletState:
    return KubeletState(path, UNREADABLE, error=error, problem=error.message)


def _claim(entry: t.Any) -> Json:
    report = claim_report(entry)
    answered = all(driver["devices"] is not None for driver in report["drivers"])
    return {**report, "pods": report["pods"] or [], "prepared": answered}
