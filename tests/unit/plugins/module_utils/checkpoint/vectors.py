# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Golden files written by real kubelets, with what ten releases make of each; see fixtures/checkpoint."""

from __future__ import annotations

import json
import pathlib
import typing as t

FOLDER = pathlib.Path(__file__).parents[3] / "fixtures" / "checkpoint"
KUBELET_FOLDERS = ("1.27", "1.28-1.29", "1.30", "1.31-1.34", "1.35-1.36", "damaged")
MATRIX: dict[str, dict[str, str]] = json.loads((FOLDER / "reader_matrix.json").read_text())
"""File to release to verdict."""


def expectations() -> t.Iterator[tuple[str, dict[str, t.Any]]]:
    """Every kubelet file with what its own release's code made of it."""
    for folder in KUBELET_FOLDERS:
        for name, expected in json.loads((FOLDER / folder / "expected.json").read_text()).items():
            yield f"{folder}/{name}", expected


def read(name: str) -> bytes:
    """The bytes of one file."""
    return (FOLDER / name).read_bytes()
