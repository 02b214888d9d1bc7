# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Roles: what a variable is said to be, compared with what it is; the unit, compared with the code; what is refused.

What a role does to a node is shown by the molecule scenarios. Here it runs in check mode, and only to where it refuses.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import typing as t

import pytest
import yaml
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.exit_codes import without_restart

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROLES = ROOT / "roles"
NAMES = sorted(path.name for path in ROLES.iterdir() if path.is_dir())
STATE_FILE = ROOT / "tests" / "unit" / "fixtures" / "checkpoint" / "1.35-1.36" / "multi_claim_order_a.json"
BOOKWORM = {
    "distribution": "Debian",
    "os_family": "Debian",
    "distribution_major_version": "12",
    "distribution_version": "12.5",
    "service_mgr": "systemd",
    "python": {"executable": sys.executable},
}
PLAIN = {"agent_settings": {"kubernetes": {"enabled": False}}, "agent_python": sys.executable}


def load(role: str, name: str) -> t.Any:
    """A YAML file of a role."""
    return yaml.safe_load((ROLES / role / name).read_text(encoding="utf-8"))


def tasks_in(node: t.Any) -> t.Iterator[dict[str, t.Any]]:
    """Every task of a parsed file, those in blocks and plays too."""
    for task in node or []:
        yield task
        for part in ("tasks", "pre_tasks", "post_tasks", "block", "rescue", "always"):
            yield from tasks_in(task.get(part))


def refused(folder: pathlib.Path, facts: t.Mapping[str, t.Any], variables: t.Mapping[str, t.Any]) -> str:
    """Run the agent's role in check mode on a node with these facts; the message with which it failed."""
    play = {
        "hosts": "localhost",
        "connection": "local",
        "gather_facts": False,
        "vars": {"ansible_become": False, "ansible_python_interpreter": sys.executable},
        "pre_tasks": [{"ansible.builtin.set_fact": {"cacheable": True, **facts}}],
        "roles": [{"role": "nodeops.dra.agent", "vars": dict(variables)}],
    }
    (folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    env = {key: value for key, value in os.environ.items() if not key.startswith("ANSIBLE_")}
    env.update(
        ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".build"),
        ANSIBLE_HOME=str(folder / "home"),
        ANSIBLE_LOCALHOST_WARNING="false",
        ANSIBLE_NOCOLOR="1",
        LC_ALL="C.UTF-8",
    )
    argv = [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), "-i", "localhost,", "--check", "play.yml"]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    assert done.returncode == 2, output
    assert "changed=0" in output, output
    assert "Traceback" not in output, output
    return " ".join(output.split())


@pytest.mark.parametrize("role", NAMES)
def test_defaults_are_those_of_the_argument_spec(role: str) -> None:
    options = load(role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {name: option["default"] for name, option in options.items()} == load(role, "defaults/main.yml")


@pytest.mark.parametrize("role", NAMES)
def test_every_variable_is_described_and_named_after_the_role(role: str) -> None:
    options = load(role, "meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert [name for name, option in options.items() if not option.get("description") or "type" not in option] == []
    assert [name for name in options if not name.startswith(f"{role}_")] == []
    private = load(role, "vars/main.yml") if (ROLES / role / "vars").exists() else {}
    assert [name for name in private if not name.startswith(f"{role}__")] == []


@pytest.mark.report("F105")
def test_the_unit_gives_up_where_a_new_start_cannot_help_and_only_there() -> None:
    text = (ROLES / "agent" / "templates" / "nodeops-dra-agent.service.j2").read_text(encoding="utf-8")
    unit = dict(re.findall(r"^(\w+)=(.*)$", text, re.MULTILINE))
    assert unit["Type"] == "notify"
    assert unit["RestartPreventExitStatus"] == without_restart()
    # With every start cut off at once, the last try comes a minute and more after the first.
    assert int(unit["StartLimitBurst"]) * int(unit["RestartSec"]) >= 60


@pytest.mark.report("F099")
@pytest.mark.parametrize("path", sorted(str(path.relative_to(ROOT)) for path in (ROLES / "agent").glob("tasks/*.yml")))
def test_only_handlers_restart_and_the_way_back(path: str) -> None:
    tasks = tasks_in(yaml.safe_load((ROOT / path).read_text(encoding="utf-8")))
    services = [task["ansible.builtin.systemd_service"] for task in tasks if "ansible.builtin.systemd_service" in task]
    restarts = [str(service.get("state")) for service in services if "restarted" in str(service.get("state"))]
    assert restarts == [] or path.endswith("/rollback.yml")
    assert not [service for service in services if service.get("name") not in (None, "{{ agent__service }}")]


@pytest.mark.report("F099")
def test_playbooks_work_through_one_node_first_and_end_at_the_first_failure() -> None:
    for name in ("deploy_agent", "remove"):
        plays = yaml.safe_load((ROOT / "playbooks" / f"{name}.yml").read_text(encoding="utf-8"))
        [play] = [play for play in plays if play["hosts"] != "localhost"]
        assert re.search(r"default\(\[1, ", play["serial"]), name
        assert play["max_fail_percentage"] == 0, name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("facts", "variables", "says"),
    [
        pytest.param({"service_mgr": "openrc"}, {}, "is run by openrc, expected systemd", id="no-systemd"),
        pytest.param(
            {"distribution_major_version": "11", "distribution_version": "11.9"},
            {},
            "Debian 11.9 is not supported : its newest Python is 3.9. Expected Debian 12 or newer",
            id="old-distribution",
        ),
        pytest.param(
            {"distribution": "Alpine", "os_family": "Alpine", "distribution_version": "3.20"},
            {"agent_python": ""},
            "Alpine 3.20 is not supported . Expected Debian 12 or newer",
            id="other-distribution",
        ),
        pytest.param({}, {"agent_state": "latest"}, "value of agent_state must be one of: present, absent", id="state"),
        pytest.param({}, {"agent_socket": "/tmp/a.sock"}, "expected a file in a directory below /run", id="socket"),
        pytest.param(
            {},
            {"agent_socket": f"/run/{'a' * 100}/agent.sock"},
            "has 116 bytes; a path of a socket has 107 at most",
            id="long-socket",
        ),
        pytest.param({}, {"agent_settings": {}}, "no kubeconfig is set. Set agent_settings.kubernetes", id="cluster"),
        pytest.param({}, {"agent__free_mb": 10**9}, "expected 1000000000. Make room, or set agent_prefix", id="room"),
        pytest.param(
            {},
            {"agent_python": "/nowhere/python3"},
            "/nowhere/python3 is not installed. Set agent_python to a Python 3.11 or newer that has venv",
            id="python",
        ),
        pytest.param(
            {},
            {"agent_kubelet_root": "/mnt/" + "k" * 80},
            "has 85 bytes; with more than 80 the sockets of drivers below it",
            id="kubelet-root",
            marks=pytest.mark.report("F098"),
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_changed(
    tmp_path: pathlib.Path, facts: dict[str, t.Any], variables: dict[str, t.Any], says: str
) -> None:
    assert says in refused(tmp_path, {**BOOKWORM, **facts}, {**PLAIN, **variables})


@pytest.mark.slow
@pytest.mark.report("F102")
def test_an_agent_whose_claims_are_in_use_is_not_removed(tmp_path: pathlib.Path) -> None:
    state = tmp_path / "dra_manager_state"
    state.write_bytes(STATE_FILE.read_bytes())
    variables = {**PLAIN, "agent_state": "absent", "agent_state_directory": str(tmp_path)}
    said = refused(tmp_path, BOOKWORM, variables)
    assert "3 claims are recorded: default/claim-1 of gpu.example.com, held by b0d00001-" in said
    assert "End what uses them, or give them back" in said
    assert state.read_bytes() == STATE_FILE.read_bytes()
