# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Life and end of a real daemon process: signals, exit statuses, what systemd hears."""

from __future__ import annotations

import re
import signal
import socket

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.metric_table import COMMON_METRICS

from ..kube.certificates import Authority
from .processes import World, fields, get, trusting

WATCHDOG = {"WATCHDOG_USEC": "200000"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_ends_with_success(world: World, number: signal.Signals) -> None:
    process = world.start()
    process.until("working")
    assert process.end(number) == 0
    assert [line for line in process.lines if "draining" in line]
    assert process.lines[-1].endswith("ended as asked daemon=nodeops-dra-small")
    assert process.output == ""


def test_a_second_signal_ends_at_once(world: World) -> None:
    process = world.start(small={"stop": "hangs"})
    process.until("working")
    process.send(signal.SIGTERM)
    process.until("draining")
    assert process.end(signal.SIGINT) == -signal.SIGINT
    assert "asked again" in process.lines[-1]


def test_while_it_drains_it_is_alive_but_not_ready_and_takes_no_reload(world: World) -> None:
    notify = world.notify()
    process = world.start(small={"stop": "hangs"}, environment={"NOTIFY_SOCKET": notify.address})
    url = process.url()
    process.until("working")
    process.send(signal.SIGTERM)
    process.until("draining")
    process.send(signal.SIGHUP)
    assert get(f"{url}/readyz?verbose")[:2] == (503, "[-]stopping\nreadyz check failed\n")
    assert get(f"{url}/healthz")[0] == 200
    notify.until("STOPPING")
    process.end(signal.SIGINT)
    assert not [note for note in notify.waiting() if "READY" in note or "RELOADING" in note]


def test_a_drain_that_takes_too_long_has_its_own_status(world: World) -> None:
    process = world.start(small={"stop": "hangs"}, life={"drain_timeout": 0.1})
    process.until("working")
    assert process.end() == 81
    assert any("did not end within 0.1 s" in line for line in process.lines)


def test_a_drain_that_ignores_its_end_is_ended_by_force(world: World) -> None:
    process = world.start(small={"stop": "stubborn"}, life={"drain_timeout": 0.1})
    process.until("working")
    assert process.end() == 81
    assert "ending by force" in process.lines[-1]


def test_a_thread_that_hangs_does_not_keep_the_process(world: World) -> None:
    process = world.start(small={"stop": "thread"})
    process.until("working")
    assert process.end() == 0
    assert "dead disk" in process.lines[-1]


def test_a_signal_during_the_start_ends_it_before_the_drain(world: World) -> None:
    notify = world.notify()
    process = world.start(small={"start": "waits"}, environment={"NOTIFY_SOCKET": notify.address})
    notify.until("STATUS", "looking for devices")
    assert process.end() == 0
    log = "\n".join(process.lines)
    assert 0 < log.index("start given up") < log.index("draining")


@pytest.mark.parametrize(
    ("sections", "code", "text"),
    [
        pytest.param({"small": {"work": "bug"}}, 70, "KeyError: 'a bug'", id="bug"),
        pytest.param({"small": {"work": "unwatched"}}, 70, "has no live check", id="no-live-check"),
        pytest.param({"small": {"start": "bug"}}, 70, "KeyError: 'a bug'", id="bug-in-start"),
        pytest.param({"small": {"work": "lost"}}, 75, "The lease is lost. Another instance leads.", id="lease",
                     marks=pytest.mark.report("F070")),
        pytest.param({"small": {"work": "group"}}, 75, "The lease is lost.", id="lease-in-a-task"),
        pytest.param({"small": {"work": "failure"}}, 1, "It does not work. Do something.", id="failure"),
        pytest.param({"small": {"work": "returns"}}, 1, "came to an end by itself", id="returns"),
        pytest.param({"small": {"work": "rights"}}, 77, "Permission denied", id="rights"),
        pytest.param({"small": {"work": "refused"}}, 71, "No file.", id="system"),
        pytest.param({"small": {"start": "library"}}, 82, "library=grpc", id="library"),
        pytest.param({"small": {"strat": "x"}}, 78, "Did you mean small.start?", id="settings"),
        pytest.param({"http": {"tls": {"certificate_file": "/x", "key_file": "/y"}}}, 71, "/x could not", id="tls"),
    ],
)  # fmt: skip
def test_each_end_has_its_status_and_no_trace_but_for_bugs(
    world: World, sections: dict[str, dict[str, object]], code: int, text: str
) -> None:
    process = world.start(**sections)
    assert process.ended() == code
    log = "\n".join(process.lines)
    assert text in log
    assert ("Traceback" in log) == (code == 70)
    assert f"exit_code={code}" in process.lines[-1]
    assert process.output == ""


def test_a_second_instance_is_refused_with_the_pid_of_the_first(world: World) -> None:
    first = world.start()
    first.until("working")
    second = world.again()
    assert second.ended() == 80
    assert any(f"pid {first.pid}" in line for line in second.lines)
    assert first.end() == 0
    third = world.again()
    third.until("working")


def test_an_address_in_use_is_told_with_the_address(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = world.start(http={"port": port})
        assert process.ended() == 69
    assert any(f"127.0.0.1 port {port} could not be listened on" in line for line in process.lines)


def test_a_wrong_command_line_has_its_own_status(world: World) -> None:
    world.write()
    process = world.again("--no-such-option")
    assert process.ended() == 64
    assert "no-such-option" in process.lines[-1]


def test_settings_can_be_checked_without_a_start(world: World) -> None:
    process = world.start("--check-config")
    assert process.ended() == 0
    assert process.output == f"{process.config} can be used.\n"
    process = world.start("--check-config", log={"level": "loud"}, http={"prot": 1})
    assert process.ended() == 78
    assert sum("settings cannot be used problem=" in line for line in process.lines) == 2
    assert process.output == ""


def test_without_http_nothing_listens(world: World) -> None:
    process = world.start(http={"enabled": False})
    process.until("working")
    assert process.end() == 0
    assert not [line for line in process.lines if "listening" in line]


# systemd


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_hears_ready_reload_and_stop(world: World, abstract: bool) -> None:
    address = f"@nodeops-test-{world.folder.name}" if abstract else ""
    notify = world.notify(address)
    process = world.start(environment={"NOTIFY_SOCKET": notify.address})
    assert notify.until("READY") == {"READY": "1", "STATUS": "ready"}
    process.until("working")
    process.send(signal.SIGHUP)
    note = notify.until("RELOADING")
    assert int(note["MONOTONIC_USEC"]) > 0
    assert notify.until("READY")["STATUS"] == "ready"
    process.send(signal.SIGTERM)
    assert notify.until("STOPPING")["STATUS"] == "stopping"
    assert int(notify.until("EXTEND_TIMEOUT_USEC")["EXTEND_TIMEOUT_USEC"]) > 25_000_000
    assert process.ended() == 0
    assert not [note for note in notify.waiting() if "READY" in note]


def test_the_watchdog_hears_nothing_while_the_live_probe_hangs(world: World) -> None:
    notify = world.notify()
    # On a loaded machine a probe may be late before it hangs: no line about it must be held back.
    process = world.start(environment={"NOTIFY_SOCKET": notify.address, **WATCHDOG}, log={"repeat_window": 0})
    for _number in range(3):
        notify.until("WATCHDOG")
    process.order("hang")
    process.until("probe hangs")
    process.until("watchdog is not told")
    notify.waiting()  # what was sent before the probe hung
    process.until("watchdog is not told")
    process.until("watchdog is not told")
    assert not [note for note in notify.waiting() if "WATCHDOG" in note]
    process.order("hang", on=False)
    notify.until("WATCHDOG")


def test_a_watchdog_for_another_process_is_not_served(world: World) -> None:
    notify = world.notify()
    process = world.start(environment={"NOTIFY_SOCKET": notify.address, **WATCHDOG, "WATCHDOG_PID": "1"})
    process.until("working")
    process.end()
    assert not [note for note in notify.waiting() if "WATCHDOG" in note]


@pytest.mark.report("F105")
def test_a_slow_start_asks_for_patience_and_tells_its_progress(world: World) -> None:
    notify = world.notify()
    process = world.start(environment={"NOTIFY_SOCKET": notify.address}, small={"start": "waits"})
    url = process.url()
    assert int(notify.until("EXTEND_TIMEOUT_USEC")["EXTEND_TIMEOUT_USEC"]) >= 30_000_000
    assert notify.until("STATUS")["STATUS"] == "starting: looking for devices"
    assert get(f"{url}/healthz")[0] == 200
    assert get(f"{url}/readyz?verbose")[:2] == (503, "[-]starting: looking for devices\nreadyz check failed\n")
    assert not [note for note in notify.seen if "READY" in note]
    process.order("go")
    assert notify.until("READY")["STATUS"] == "ready"
    assert get(f"{url}/readyz")[0] == 200


@pytest.mark.report("F105")
def test_a_start_that_takes_for_ever_counts_as_started_but_not_ready(world: World) -> None:
    notify = world.notify()
    process = world.start(
        environment={"NOTIFY_SOCKET": notify.address}, small={"start": "waits"}, life={"start_timeout": 0.1}
    )
    url = process.url()
    assert notify.until("READY")["STATUS"] == "degraded: starting: looking for devices"
    assert get(f"{url}/readyz")[0] == 503
    process.order("go")
    assert notify.until("READY")["STATUS"] == "ready"


@pytest.mark.report("F048")
def test_a_cause_that_passes_by_itself_does_not_end_the_process(world: World) -> None:
    process = world.start(small={"start": "passing"})
    url = process.url()
    process.until("start failed, trying again retry_in=1.0")
    assert "API server does not answer" in get(f"{url}/readyz?verbose")[1]
    process.order("go")
    process.until("working")
    assert "nodeops_dra_start_attempts_total 1.0" not in get(f"{url}/metrics")[1]


# Reload


def test_reload_takes_what_it_can_and_names_what_needs_a_restart(world: World) -> None:
    process = world.start()
    url = process.url()
    process.until("working")
    world.write(small={"greeting": "bye", "work": "other"}, log={"format": "json"})
    process.send(signal.SIGHUP)
    process.until("reloaded greeting=bye")
    assert fields(process.until("settings reloaded"))["changed"] == "small.greeting,log.format"
    assert fields(process.until("only by a restart"))["key"] == "small.work"
    process.send(signal.SIGHUP)
    process.until("only by a restart")
    assert re.search(r'reloads_total{result="pending"} 2.0', get(f"{url}/metrics")[1])


def test_a_reload_that_cannot_be_used_keeps_the_former_settings(world: World) -> None:
    process = world.start(small={"greeting": "first"})
    process.until("working")
    world.write(small={"greeting": 3}, log={"level": "loud"})
    process.send(signal.SIGHUP)
    problems = [process.until("the former settings stay in use") for _number in range(2)]
    assert f"{process.config} line 4: log.level: found 'loud'" in problems[0]
    assert "line 7: small.greeting: found 3, expected text" in problems[1]
    world.write(small={"greeting": "unusable"})
    process.send(signal.SIGHUP)
    process.until("This greeting cannot be used.")
    world.write(small={"greeting": "first"}, log={"format": "json"})
    process.send(signal.SIGHUP)
    assert fields(process.until("settings reloaded"))["changed"] == "log.format"
    assert process.end() == 0


def test_all_that_a_daemon_exports_is_in_the_table(world: World) -> None:
    process = world.start()
    url = process.url()
    process.until("working")
    process.send(signal.SIGHUP)
    process.until("settings reloaded")
    get(f"{url}/readyz")
    exported = set(re.findall(r"^# TYPE (\S+) ", get(f"{url}/metrics")[1], re.MULTILINE))
    assert exported == {metric.name for metric in COMMON_METRICS}


# Health


@pytest.mark.report("F107")
def test_health_goes_through_the_work_and_one_dead_driver_leaves_it_ready(world: World) -> None:
    process = world.start()
    url = process.url()
    process.until("working")
    assert get(f"{url}/readyz?verbose")[1] == "[+]loop ok\n[+]drivers ok: 2 of 2\nreadyz check passed\n"
    process.order("one-dead")
    until_answer(f"{url}/readyz?verbose", "[!]drivers degraded: driver b does not answer")
    assert get(f"{url}/readyz")[0] == 200
    process.order("all-dead")
    until_answer(f"{url}/readyz?verbose", "[-]drivers failed: No driver answers. Look at them.")
    assert get(f"{url}/readyz")[0] == 503
    assert get(f"{url}/healthz?verbose")[1] == "[+]loop ok\nhealthz check passed\n"


@pytest.mark.report("F107")
def test_what_is_degraded_stands_in_the_status_also_after_a_reload(world: World) -> None:
    notify = world.notify()
    (world.folder / "one-dead").touch()
    process = world.start(environment={"NOTIFY_SOCKET": notify.address})
    said = "degraded: drivers: driver b does not answer"
    assert notify.until("STATUS", "degraded") == {"STATUS": said}
    process.until("health changed")
    process.send(signal.SIGHUP)
    notify.until("RELOADING")
    assert notify.until("READY") == {"READY": "1", "STATUS": said}


def test_https_and_token_in_a_real_process(world: World) -> None:
    authority = Authority(world.folder / "pki")
    certificate, key = authority.issue("daemon")
    (world.folder / "token").write_text("tok-SYNTH-1\n")
    process = world.start(
        http={
            "tls": {"certificate_file": str(certificate), "key_file": str(key)},
            "token_file": str(world.folder / "token"),
        }
    )
    url = process.url()
    process.until("working")
    assert url.startswith("https://127.0.0.1:")
    tls = trusting(authority)
    assert get(f"{url}/readyz", tls=tls)[:2] == (200, "ok\n")
    assert get(f"{url}/metrics", tls=tls)[0] == 401
    assert "nodeops_dra_ready 1.0" in get(f"{url}/metrics", tls=tls, token="tok-SYNTH-1")[1]
    assert process.end() == 0
    assert "SYNTH" not in "\n".join(process.lines)


def until_answer(url: str, text: str) -> None:
    """Ask until the answer has ``text``: results are shared for a second."""
    while text not in get(url)[1]:
        pass
