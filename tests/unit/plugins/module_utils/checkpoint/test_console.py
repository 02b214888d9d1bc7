# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The tool for a node's console: exit status, text that a tired person can read, and no stack trace whatever comes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import __main__ as program
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint import console

from . import builders as b
from .child_process import LAYER, environment, named_child, python_child

SOUND = b.crc_file(b.crc_claim(1), b.crc_claim(2))
BROKEN = b.crc_file(b.crc_claim(1), b.crc_claim(2), checksum=7)
HOLD = "import sys; f = open(sys.argv[1]); print('ready', flush=True); sys.stdin.read()"


class Tool:
    """The program in this process, on one file."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = directory / "dra_manager_state"
        self.file.write_bytes(BROKEN)
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, command: str, *options: str, data: bytes | None = None) -> int:
        """The exit status; what was printed is in ``out`` and ``err``."""
        if data is not None:
            self.file.write_bytes(data)
        status = program.main([command, str(self.file), *options])
        self.out, self.err = self._capsys.readouterr()
        return status

    def json(self, command: str, *options: str, data: bytes | None = None) -> t.Any:
        self(command, *options, "--output", "json", data=data)
        assert self.err == ""
        return json.loads(self.out)


@pytest.fixture
def tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Tool:
    return Tool(tmp_path, capsys)


# Exit status


@pytest.mark.parametrize("output", ["text", "json"])
@pytest.mark.parametrize(
    ("data", "options", "status"),
    [
        pytest.param(SOUND, [], 0, id="sound"),
        pytest.param(SOUND, ["--kubelet", "1.36"], 0, id="sound for its release"),
        pytest.param(SOUND, ["--kubelet", "1.30"], 1, id="of another release"),
        pytest.param(SOUND, ["--known-pod", b.pod(1), "--known-pod", b.pod(2)], 0, id="pods known"),
        pytest.param(SOUND, ["--known-pod", b.pod(1)], 1, id="a pod that is gone"),
        pytest.param(BROKEN, [], 1, id="broken"),
        pytest.param(b"", [], 1, id="empty"),
        pytest.param(b.crc_file(b.crc_claim(PodUIDs=None)), [], 1, id="faulty"),
        pytest.param(b.fnv_file(b.fnv_claim(1)), [], 0, id="old and sound"),
        pytest.param(SOUND, ["--kubelet", "1.26"], 2, id="a release without a file"),
        pytest.param(SOUND, ["--kubelet", "new"], 2, id="no release"),
    ],
)
def test_a_look_says_by_its_status_what_it_found(
    data: bytes, options: list[str], status: int, output: str, tool: Tool
) -> None:
    assert tool("inspect", *options, "--output", output, data=data) == status
    assert bool(tool.out) == (status != 2 or output == "json")
    assert bool(tool.err) == (status == 2 and output == "text")


def test_a_missing_file_is_sound_and_a_directory_cannot_be_looked_at(tool: Tool) -> None:
    tool.file.unlink()
    assert tool("inspect") == 0
    assert "MISSING: there is no such file" in tool.out
    tool.file.mkdir()
    assert tool("inspect") == 2
    assert "is a directory" in tool.err


def test_a_change_that_is_made_or_not_needed_is_0(tool: Tool) -> None:
    assert tool("repair", "--check") == 0
    assert "would be changed" in tool.out
    assert tool.file.read_bytes() == BROKEN
    assert tool("repair") == 0
    assert tool.file.read_bytes() == SOUND
    assert tool("repair") == 0
    assert tool.out == f"{tool.file}: nothing to do, 2 claims.\n"


def test_a_change_that_is_not_made_is_2(tool: Tool) -> None:
    with named_child("kubelet", f"--root-dir={tool.file.parent}") as kubelet:
        assert tool("repair") == 2
        assert f"kubelet pid {kubelet.pid} runs on" in tool.err
        assert (tool.out, tool.file.read_bytes()) == ("", BROKEN)
        told = tool.json("repair")
        assert told["failed"] is True
        assert told["kubelet"]["pid"] == kubelet.pid
        assert told["file"] == str(tool.file)
        assert "path" not in told
        assert tool("repair", "--force") == 0
    with python_child(HOLD, str(tool.file)):
        assert tool("convert", "--to", "1.30") == 2
        assert "held open by pid" in tool.err
    assert tool("convert", "--to", "1.30", data=BROKEN) == 2
    assert tool.err.startswith("The file cannot be converted: no release reads it")
    assert tool("restore", "--from", str(tool.file) + ".none") == 2
    assert "No such file or directory" in tool.err
    assert tool("restore") == 2
    assert "None of the 1 copies beside" in tool.err


# What can be asked for


def test_convert_there_and_back_with_universal_between(tool: Tool) -> None:
    assert tool("convert", "--to", "v1.30.4", data=SOUND) == 0
    assert tool("inspect", "--kubelet", "1.30") == 0
    assert tool("convert", "--to", "universal") == 0
    for release in ("1.27", "1.30", "1.31", "1.36"):
        assert tool("inspect", "--kubelet", release) == 0
        assert "  format    universal, " in tool.out
    assert tool("convert", "--to", "1.36") == 0
    assert tool.out.endswith(": nothing to do, 2 claims.\n"), "it serves that release as it is"


def test_repair_for_the_release_that_the_node_runs(tool: Tool) -> None:
    assert tool("repair", "--kubelet", "1.30") == 0
    assert json.loads(tool.file.read_bytes()).keys() == {"version", "entries", "checksum"}


def test_restore_names_what_it_took_and_passed_over(tool: Tool, tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    ring.mkdir()
    (ring / "dra_manager_state.20260101T000000Z").write_bytes(SOUND)
    (ring / "dra_manager_state.20260102T000000Z").write_bytes(b"")
    assert tool("restore", "--ring", str(ring)) == 0
    assert f"from      {ring}/dra_manager_state.20260101T000000Z" in tool.out
    assert tool.file.read_bytes() == SOUND
    assert tool("restore", "--ring", str(ring)) == 0
    assert tool.out.endswith("To go back all the same, name a copy (--from).\n")
    empty = tmp_path / "copy"
    empty.write_bytes(b.crc_file())
    assert tool("restore", "--from", str(empty)) == 0
    assert "drop_claim: Claim default/claim-1" in tool.out
    assert "loses the claim: its drivers gpu.example.com are not told" in tool.out


@pytest.mark.parametrize(
    ("options", "left"),
    [
        pytest.param(["--drop", b.uid(1)], [2], id="drop by UID"),
        pytest.param(["--drop", "default/claim-2"], [1], id="drop by name"),
        pytest.param(["--drop", "default/"], [], id="drop a namespace"),
        pytest.param(["--drop", b.uid(1), "--drop", b.uid(2)], [], id="drop two"),
        pytest.param(["--drop", "else/claim-1"], [1, 2], id="drop none"),
        pytest.param(["--keep", "default/claim-2"], [2], id="keep"),
    ],
)
def test_claims_are_chosen_by_hand(options: list[str], left: list[int], tool: Tool) -> None:
    assert tool("repair", *options) == 0
    assert tool.file.read_bytes() == b.crc_file(*[b.crc_claim(number) for number in left])


def test_claims_are_added_from_what_a_look_printed(tool: Tool, tmp_path: Path) -> None:
    shown = tmp_path / "shown.json"
    shown.write_text(json.dumps(tool.json("inspect", data=SOUND)))
    assert tool("repair", "--add", str(shown), "--drop", b.uid(2), data=b.crc_file()) == 0
    assert tool.file.read_bytes() == SOUND
    shown.write_text(json.dumps(json.loads(shown.read_text())["claims"][:1]))
    assert tool("convert", "--to", "1.36", "--add", str(shown), data=b.crc_file(b.crc_claim(2))) == 0
    assert tool.file.read_bytes() == b.crc_file(b.crc_claim(2), b.crc_claim(1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param(["--keep", "default/claim-7"], "None of the 2 claims is to be kept", id="keep none"),
        pytest.param(["--drop", ""], "neither uid, name nor namespace", id="empty selector"),
        pytest.param(["--drop", "/"], "neither uid, name nor namespace", id="slash alone"),
        pytest.param(["--add", "{dir}/none"], "none could not be read", id="no file to add"),
        pytest.param(["--add", "{dir}/text"], "is not JSON", id="text to add"),
        pytest.param(["--add", "{dir}/number"], "holds no list of claims", id="number to add"),
        pytest.param(["--add", "{dir}/deep"], "is not JSON", id="deep nesting to add"),
        pytest.param(["--add", "{dir}/half"], "A claim to add has no name", id="half a claim to add"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(options: list[str], words: str, tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("text")
    (tmp_path / "number").write_text("5")
    (tmp_path / "deep").write_text("[" * 100_000)
    (tmp_path / "half").write_text('[{"uid":"u"}]')
    assert tool("repair", *[option.format(dir=tmp_path) for option in options]) == 2
    assert words in tool.err
    assert tool.err.count("\n") == 1
    assert tool.file.read_bytes() == BROKEN


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        pytest.param([], "the following arguments are required: COMMAND", id="no command"),
        pytest.param(["mend"], "invalid choice: 'mend'", id="no such command"),
        pytest.param(["convert", "x"], "the following arguments are required: --to", id="no target"),
        pytest.param(["inspect", "--output", "yaml"], "invalid choice: 'yaml'", id="no such output"),
        pytest.param(["restore", "--drop", "u"], "unrecognized arguments", id="an option of another command"),
        pytest.param(["convert", "--to", "1.31", "--kubelet", "1.30"], "unrecognized arguments", id="two releases"),
        pytest.param(["inspect", "--kube", "1.30"], "unrecognized arguments", id="half an option"),
        pytest.param(["inspect", "a", "b"], "unrecognized arguments: b", id="two files"),
    ],
)
def test_bad_usage_is_one_clear_line(argv: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main(argv)
    assert ended.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("dra-checkpoint")
    assert words in lines[-1]


@pytest.mark.parametrize("command", ["inspect", "repair", "convert", "restore"])
def test_help_explains_every_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.main([command, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert "--output {text,json}" in text
    assert ("--force" in text) == (command != "inspect")


def test_without_a_file_that_of_the_kubelet_root_is_meant(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dra_manager_state").write_bytes(SOUND)
    assert program.main(["inspect", "--kubelet-root", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}/dra_manager_state\n")


# Text


def test_the_text_begins_with_the_verdict_and_ends_with_what_to_do(tool: Tool) -> None:
    tool("inspect", "--kubelet", "1.36")
    assert (
        tool.out
        == f"""\
{tool.file}
  status    REFUSED: the kubelet of 1.36 does not start with this file
  format    crc-1.35 (Kubernetes 1.35-1.36), {len(BROKEN)} bytes
  read by   no release
  checksum  7 (WRONG, the data gives {json.loads(SOUND)["Checksum"]})
  claims    2

Faults
  ERROR checksum_mismatch at Checksum
        The checksum is 7, the data gives {json.loads(SOUND)["Checksum"]}.
        Kubelet (all releases): does not start.
        Repair: recompute_checksum; loses nothing.

CLAIM            UID                                   PODS  DRIVERS          DEVICES
default/claim-1  c0de0001-1111-4222-8333-000000000001  1     gpu.example.com  node-1/gpu-1
default/claim-2  c0de0002-1111-4222-8333-000000000002  1     gpu.example.com  node-1/gpu-2

A repair would keep 2 claims:
  recompute_checksum at Checksum
Next: repair {tool.file}
"""
    )


def test_what_is_saved_from_a_cut_file_is_counted(tool: Tool) -> None:
    tool("inspect", data=SOUND[:-120])
    assert "REFUSED: its kubelets do not start with this file" in tool.out
    assert "claims    1 can be saved, 1 more is cut" in tool.out
    assert "A repair would keep 1 claim:" in tool.out


def test_the_text_names_the_kubelet_that_must_be_stopped_first(tool: Tool) -> None:
    with named_child("kubelet", f"--root-dir={tool.file.parent}") as kubelet:
        tool("inspect")
    assert f"kubelet   pid {kubelet.pid} runs on {tool.file.parent}" in tool.out
    assert "First stop the kubelet. " in tool.out


def test_a_long_list_is_cut_unless_all_is_wanted(tool: Tool) -> None:
    many = b.crc_file(*[b.crc_claim(number, PodUIDs=None) for number in range(25)])
    tool("inspect", data=many)
    assert (tool.out.count("gpu.example.com"), tool.out.count("pods_null at")) == (20, 5)
    assert "... and 5 more claims (--all lists them)" in tool.out
    assert "  ... and 20 more pods_null (--all lists them)" in tool.out
    tool("inspect", "--all")
    assert (tool.out.count("gpu.example.com"), tool.out.count("pods_null at")) == (25, 25)
    assert "--all" not in tool.out


def test_a_long_row_of_steps_is_cut(tool: Tool) -> None:
    many = b.crc_file(*[b.crc_claim(number, PodUIDs=None) for number in range(25)])
    tool("repair", "--check", data=many)
    assert tool.out.count("set_empty: ") == 20
    assert tool.out.endswith("  ... and 5 more (--output json has them all)\n")
    assert len(tool.json("repair", "--check")["steps"]) == 25


def test_a_claim_of_an_old_file_is_shown_with_its_cdi_names(tool: Tool) -> None:
    tool("inspect", data=b.fnv_file(b.fnv_claim(1), b.fnv_claim(2, PodUIDs=None, CDIDevices=None)))
    assert (
        "default/claim-1  c0de0001-1111-4222-8333-000000000001  1     gpu.example.com  vendor.example.com/gpu=dev-1"
        in (tool.out)
    )
    assert "default/claim-2  c0de0002-1111-4222-8333-000000000002  null  gpu.example.com  -" in tool.out


def test_a_file_of_another_kind_is_told_as_what_it_is(tool: Tool, capsys: pytest.CaptureFixture[str]) -> None:
    other = tool.file.parent / "dra_health_state"
    other.write_bytes(b'{"gpu.example.com":null}')
    assert program.main(["inspect", str(other)]) == 1
    text = capsys.readouterr().out
    assert text.startswith(f"{other}\n  status    FAULTY\n  kind      dra_health_state, ")
    assert program.main(["repair", str(other)]) == 2
    assert "is not changed: it is a file of kind dra_health_state" in capsys.readouterr().err


def test_names_cannot_move_the_cursor_or_break_a_line(tool: Tool) -> None:
    tool("inspect", data=b.crc_file(b.crc_claim(1, ClaimName="a\x1b[2J\nb\u202e")))
    assert "default/a\\x1b[2J\\nb\\u202e" in tool.out
    tool("repair", "--drop", b.uid(1))
    assert not {char for char in tool.out if not char.isprintable()} - {"\n"}


def test_columns_are_as_wide_as_what_is_in_them() -> None:
    assert list(console.table([("A", "B"), ("long\tname", "x"), ("", "y")])) == [
        "A           B",
        "long\\tname  x",
        "            y",
    ]


# As a process


def run(*argv: str, prefix: t.Sequence[str] = (), **extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, sys.executable, "-m", LAYER, *argv],
        env={**environment(), **extra},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )


def test_as_a_module_of_python_it_ends_with_the_same_status(tool: Tool) -> None:
    assert run("inspect", str(tool.file)).returncode == 1
    assert run("repair", str(tool.file)).returncode == 0
    done = run("inspect", str(tool.file), "--output", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["status"] == "sound"
    assert run("inspect", str(tool.file / "x")).returncode == 2


def test_a_terminal_that_cannot_show_a_name_still_gets_the_report(tool: Tool) -> None:
    tool.file.write_bytes(b.crc_file(b.crc_claim(1, ClaimName="grün")))
    done = run("inspect", str(tool.file), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "default/gr\\xfcn" in done.stdout


def test_a_pager_that_is_closed_early_makes_no_stack_trace(tool: Tool) -> None:
    tool.file.write_bytes(b.crc_file(*[b.crc_claim(number) for number in range(5000)]))
    with subprocess.Popen(
        [sys.executable, "-m", LAYER, "inspect", "--all", str(tool.file)],
        env={**environment(), "PYTHONUNBUFFERED": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == ""
    assert child.returncode == 141


INTERRUPTED = f"""
import os, signal, sys
from {LAYER} import __main__, statefile

def inspect(*unused, **unused_too):
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()

statefile.inspect = inspect
# As on a terminal: a shell starts what it runs in the background with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv[1:] = ["inspect", "x"]
raise SystemExit(__main__.run())
"""


def test_ctrl_c_makes_no_stack_trace() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], env=environment(), capture_output=True, text=True, timeout=50, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")
