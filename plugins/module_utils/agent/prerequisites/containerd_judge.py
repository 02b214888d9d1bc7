# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Ask containerd itself what it makes of a file."""

from __future__ import annotations

import subprocess
import typing as t

from ...checkpoint.errors import DraError
from ...checkpoint.file_errors import reason, shown
from ..preflight.node import COMMAND_TIMEOUT
from ..preflight.toml_text import NoTomlError, read_toml

_ENVIRONMENT: t.Final = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
_TABLES: t.Final = ("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime")
_BY_HAND: t.Final = "Nothing was changed. Run it by hand on the present file: if that fails too, correct that first."


class ContainerdJudge:
    """``containerd config dump`` of one program, which must be one that root alone can replace."""

    def __init__(self, program: str) -> None:
        self._program = program

    def accepts(self, path: str) -> None:
        """Raise DraError if containerd does not start with the file at ``path``."""
        self._dump(path)

    def has_cdi(self, path: str) -> None:
        """Raise DraError if CDI is off with it. A release without a switch does not say, and has CDI."""
        if is_off_in(self._dump(path)):
            raise DraError(f"{shown(self._program)} says that CDI is off with {shown(path)}.", _BY_HAND)

    def _dump(self, path: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - no shell, and a program that root alone can replace
                [self._program, "--config", path, "config", "dump"],
                check=False,
                capture_output=True,
                timeout=COMMAND_TIMEOUT,
                env=_ENVIRONMENT,
                text=True,
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            raise self._refused(f"no answer within {COMMAND_TIMEOUT:g} s") from None
        except OSError as error:
            raise self._refused(reason(error)) from None
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise self._refused(lines[-1])
        return done.stdout

    def _refused(self, text: str) -> DraError:
        return DraError(
            f"{shown(self._program)} config dump does not accept the new configuration: {shown(text)}.", _BY_HAND
        )


def is_off_in(dump: str) -> bool:
    """Whether what was printed says that CDI is off."""
    try:
        plugins = read_toml(dump).get("plugins", {})
    except NoTomlError:
        return False
    tables = [plugins.get(name) for name in _TABLES] if isinstance(plugins, dict) else []
    return any(isinstance(table, dict) and table.get("enable_cdi") is False for table in tables)
