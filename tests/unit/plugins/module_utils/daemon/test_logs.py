# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Log lines: their fields, both forms, the journal's priorities, and repeated lines."""

from __future__ import annotations

import io
import json
import logging
import os
import pathlib
import threading
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.module_utils.daemon import log_output
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.common_settings import LogSettings
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.log_fields import OUR_PREFIX, line_of
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.log_lines import LineFormatter, is_journal
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.log_repeats import MAX_LINES, RepeatFilter

from .processes import World, fields

log = logging.getLogger(OUR_PREFIX + "kube.lease")


def record(template: str, *arguments: t.Any, level: int = logging.INFO, error: BaseException | None = None) -> t.Any:
    """A record as a logger makes it."""
    exc_info = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord(OUR_PREFIX + "kube.lease", level, "x.py", 1, template, arguments, exc_info)
    made.created = 1_700_000_000.5
    return made


@pytest.mark.parametrize(
    ("template", "arguments", "event", "expected"),
    [
        pytest.param("it works", (), "it works", {}, id="no-fields"),
        pytest.param("lease acquired lease=%s/%s by=%s", ("a", "b", "c"), "lease acquired",
                     {"lease": "a/b", "by": "c"}, id="two-in-one"),
        pytest.param("failed in=%.1f error=%s", (1.25, "a b=c d"), "failed", {"in": "1.2", "error": "a b=c d"},
                     id="value-with-blanks"),
        pytest.param("%s failed claim=%s count=%d: %s", ("prepare", "n/c", 3, "no x=y"), "prepare failed: no x=y",
                     {"claim": "n/c", "count": "3"}, id="text-after"),
        pytest.param("unresolved uid=%s: %s", ("u", "t"), "unresolved: t", {"uid": "u"}, id="colon"),
        pytest.param("100%% of key=%s", ("v",), "100% of", {"key": "v"}, id="percent"),
        pytest.param("from others url=%s", ("http://h/?a=b c=d",), "from others", {"url": "http://h/?a=b c=d"},
                     id="forged"),
        pytest.param("%(a)s", ({"a": 1},), "1", {}, id="mapping"),
        pytest.param("broken %s %s", ("a",), "broken %s %s ('a',)", {}, id="too-few"),
        pytest.param("broken", ("a",), "broken ('a',)", {}, id="too-many"),
    ],
)  # fmt: skip
def test_fields_are_found_in_the_format_string(
    template: str, arguments: tuple[t.Any, ...], event: str, expected: dict[str, str]
) -> None:
    found = line_of(record(template, *arguments))
    assert (found.event, dict(found.fields)) == (event, expected)


def test_text_is_one_line_with_quotes_where_needed() -> None:
    text = LineFormatter().format(record("driver gone driver=%s error=%s", "a.b/c", 'x "y"\n\x1b[31mz'))
    assert text == ('2023-11-14T22:13:20.500Z INFO kube.lease: driver gone driver=a.b/c error="x \\"y\\"\\n\\x1b[31mz"')


def test_json_has_fields_and_the_facts_of_an_error() -> None:
    error = DraError("No claim.", "Make one.", claim_uid="u-1")
    found = fields(LineFormatter(as_json=True).format(record("failed level=%s error=%s", 3, error)))
    assert found == {
        "time": "2023-11-14T22:13:20.500Z",
        "level": "info",
        "logger": "kube.lease",
        "message": "failed",
        "level_": "3",
        "error": "No claim. Make one.",
        "facts": {"claim_uid": "u-1"},
    }


def raised(error: BaseException) -> BaseException:
    """An error with a stack trace."""
    try:
        raise error
    except BaseException as caught:
        return caught


def test_a_stack_trace_is_for_bugs_and_for_debug() -> None:
    told, bug = raised(DraError("Told.")), raised(KeyError("k"))
    assert "Traceback" not in LineFormatter().format(record("failed", error=told))
    assert LineFormatter().format(record("failed", error=told)).endswith("failed error=Told.")
    assert "Traceback" in LineFormatter(debug=True).format(record("failed", error=told))
    assert "Traceback" in LineFormatter().format(record("failed", error=bug))
    assert "Traceback" in fields(LineFormatter(as_json=True).format(record("failed", error=bug)))["trace"]


@pytest.mark.parametrize(
    ("level", "priority"),
    [(logging.DEBUG, 7), (logging.INFO, 6), (logging.WARNING, 4), (logging.ERROR, 3), (logging.CRITICAL, 2)],
)
def test_every_line_for_the_journal_has_its_priority(level: int, priority: int) -> None:
    made = record("failed", level=level, error=raised(KeyError("k")))
    lines = LineFormatter(journal=True).format(made).splitlines()
    assert len(lines) > 3
    assert all(line.startswith(f"<{priority}>") for line in lines)
    assert lines[0].startswith(f"<{priority}>{logging.getLevelName(level)} kube.lease: failed")
    as_json = LineFormatter(journal=True, as_json=True).format(made)
    assert json.loads(as_json.removeprefix(f"<{priority}>"))["message"] == "failed"


def test_the_journal_is_known_by_its_stream(tmp_path: pathlib.Path) -> None:
    with open(tmp_path / "stream", "wb") as file:
        status = os.fstat(file.fileno())
        stream = f"{status.st_dev}:{status.st_ino}"
        assert is_journal(file.fileno(), {"JOURNAL_STREAM": stream})
        for other in (f"{status.st_dev}:1", "", "x", "1:"):
            assert not is_journal(file.fileno(), {"JOURNAL_STREAM": other})
    assert not is_journal(-1, {"JOURNAL_STREAM": stream})


def test_a_process_under_the_journal_writes_priorities(world: World) -> None:
    process = world.start(under_journal=True)
    process.until("working")
    process.end()
    assert all(line.startswith("<6>INFO ") for line in process.lines), process.lines


# Repeated lines


class Clock:
    """Time under control."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def told() -> list[t.Any]:
    return []


@pytest.fixture
def repeats(clock: Clock, told: list[t.Any]) -> RepeatFilter:
    made = RepeatFilter(2, 60.0, clock)
    made.tell_with(told.append)
    return made


def test_repeated_lines_are_held_back_and_counted(repeats: RepeatFilter, clock: Clock) -> None:
    passed = [repeats.filter(record("failed driver=%s attempt=%d", "a", number)) for number in range(5)]
    assert passed == [True, True, False, False, False]
    assert repeats.filter(record("failed driver=%s attempt=%d", "b", 1))
    clock.now = 61.0
    after = record("failed driver=%s attempt=%d", "a", 9)
    assert repeats.filter(after)
    assert line_of(after).fields == {"driver": "a", "attempt": "9", "held_back": "3"}


def test_what_was_held_back_is_told_when_the_line_does_not_come_again(
    repeats: RepeatFilter, clock: Clock, told: list[t.Any]
) -> None:
    for number in range(4):
        repeats.filter(record("failed attempt=%d", number))
    clock.now = 61.0
    assert told == []
    repeats.filter(record("another line"))
    assert [line_of(one).fields for one in told] == [{"attempt": "3", "held_back": "2"}]
    for _number in range(4):
        repeats.filter(record("third line"))
    repeats.flush()
    assert [line_of(one).event for one in told] == ["failed", "third line"]


def test_the_filter_remembers_a_bounded_number_of_lines(repeats: RepeatFilter, told: list[t.Any]) -> None:
    for _number in range(3):
        repeats.filter(record("first"))
    for number in range(MAX_LINES + 1):
        repeats.filter(record("line key=%s", f"{number}x"))
    assert [line_of(one).event for one in told] == ["first"]


def test_no_window_holds_nothing_back(clock: Clock) -> None:
    made = RepeatFilter(1, 0.0, clock)
    assert all(made.filter(record("same")) for _number in range(5))


# Output


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> t.Iterator[io.StringIO]:
    """A stream that gets everything that is logged; the log is as before afterwards."""
    root = logging.getLogger()
    handlers, level, hook = list(root.handlers), root.level, threading.excepthook
    made = io.StringIO()
    yield made
    root.handlers[:] = handlers
    root.setLevel(level)
    threading.excepthook = hook
    logging.captureWarnings(False)
    for name in ("", "kube", "kube.lease"):
        logging.getLogger((OUR_PREFIX + name).rstrip(".")).setLevel(logging.NOTSET)


def test_levels_of_parts_and_of_others(stream: io.StringIO) -> None:
    output = log_output.start_log(stream, {})
    settings = LogSettings("warning", "text", {"kube.lease": "debug"}, 5, 60.0)
    output.use(settings)
    log.debug("one")
    logging.getLogger(OUR_PREFIX + "kube").info("two")
    logging.getLogger("aiohttp.server").info("three")
    logging.getLogger("aiohttp.server").warning("four")
    output.use(LogSettings("warning", "json", {}, 5, 60.0))
    log.debug("five")
    log.warning("six")
    lines = stream.getvalue().splitlines()
    assert [line.split(": ")[-1] for line in lines[:2]] == ["one", "four"]
    assert [fields(line)["message"] for line in lines[2:]] == ["six"]
    assert output.written == {"debug": 1, "info": 0, "warning": 2, "error": 0, "critical": 0}


def test_held_back_lines_are_told_at_the_end(stream: io.StringIO) -> None:
    output = log_output.start_log(stream, {})
    for _number in range(9):
        log.info("again")
    output.finish()
    lines = stream.getvalue().splitlines()
    assert len(lines) == 6
    assert lines[-1].endswith("again held_back=4")


def test_a_stream_that_cannot_be_written_stops_nobody(stream: io.StringIO) -> None:
    output = log_output.start_log(stream, {})
    stream.close()
    log.info("lost")
    assert output.lost == 1


def test_a_thread_that_dies_is_logged(stream: io.StringIO) -> None:
    log_output.start_log(stream, {})

    def work() -> None:
        raise KeyError("k")

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    thread.join()
    assert "a thread ended by a bug thread=worker error=\"'k'\"" in stream.getvalue()
