# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A short run of the fuzzer, so that it cannot rot; ``make fuzz`` is the long one."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

FUZZER = pathlib.Path(__file__).parents[1] / "fuzz" / "run.py"
FILES = 600


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_mutated_files_get_an_answer_and_never_a_stack_trace() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(FUZZER), "--files", str(FILES), "--seed", "20", "--megabytes", "1"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{FILES} mutated files, 0 problems" in done.stdout
