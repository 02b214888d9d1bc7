# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The settings of the controller's daemon: documented, mapped to its parts, and refused with every problem."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.controller.daemon_settings import (
    SCHEMA,
    candidacy,
    connection,
    controller_settings,
    work,
)
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.exit_codes import ExitCode
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.schema import schema_faults, settings_of
from ansible_collections.nodeops.dra.plugins.module_utils.daemon.settings import (
    Settings,
    default_settings,
    load_settings,
)
from ansible_collections.nodeops.dra.plugins.module_utils.kube.options import ConnectionOptions

from .daemon_process import Daemon, Place

NAME = "nodeops-dra-controller"


def loaded(folder: pathlib.Path, text: str, **environ: str) -> Settings:
    """Settings of this text."""
    file = folder / "controller.yml"
    file.write_text(text)
    return load_settings(SCHEMA, NAME, str(file), environ)


def test_every_setting_is_documented() -> None:
    assert schema_faults(SCHEMA) == []


def test_what_a_reload_takes_over() -> None:
    own = [one for one in settings_of(SCHEMA) if one.path[0] in ("cluster", "controller", "lease")]
    assert {one.key for one in own if one.reloadable} == {
        "controller.sweep",
        "controller.admin_access",
        "controller.prioritized_list",
    }
    assert {one.key for one in own if one.secret} == {"cluster.api_key", "cluster.password", "cluster.proxy"}


def test_every_way_to_connect_can_be_set() -> None:
    fields = set(ConnectionOptions.__dataclass_fields__) - {"proxy_headers"}
    assert {one.path[1] for one in settings_of(SCHEMA) if one.path[0] == "cluster"} == fields


def test_defaults_are_those_of_the_parts() -> None:
    settings = default_settings(SCHEMA)
    assert connection(settings) == ConnectionOptions()
    made = controller_settings(settings)
    assert (made.workers, made.sweep, made.namespaces) == (50, 600.0, ())
    assert (made.switches.admin_access, made.switches.prioritized_list) == (True, True)
    assert not made.check_rights, "the daemon asks itself, for what the election takes as well"
    times = candidacy(settings).times()
    assert (times.duration, times.renew_deadline, times.retry) == (15.0, 10.0, 2.0)
    assert not work(settings).allow_coexistence


def test_settings_go_to_their_parts(tmp_path: pathlib.Path) -> None:
    settings = loaded(
        tmp_path,
        "cluster: {host: 'https://192.0.2.10:6443', validate_certs: false, impersonate_groups: [a]}\n"
        "controller: {namespaces: [team-a], workers: 3, sweep: 60, admin_access: false}\n"
        "lease: {namespace: dra, duration: 30, renew_deadline: 4, retry: 1, identity: me}\n",
        NODEOPS_DRA_CONTROLLER_CLUSTER_API_KEY="a-token",
    )
    options = connection(settings)
    assert (options.host, options.validate_certs, options.api_key) == ("https://192.0.2.10:6443", False, "a-token")
    assert list(options.impersonate_groups or ()) == ["a"]
    made = controller_settings(settings)
    assert (made.namespaces, made.workers, made.sweep) == (("team-a",), 3, 60.0)
    assert (made.switches.admin_access, made.switches.prioritized_list) == (False, True)
    assert made.drain == 4.0, "nobody renews the lease meanwhile"
    assert candidacy(settings).identity == "me"
    assert (candidacy(settings).namespace, candidacy(settings).times().duration) == ("dra", 30.0)


@contextlib.asynccontextmanager
async def ran(folder: pathlib.Path, text: str, *more: str) -> t.AsyncIterator[Daemon]:
    """The daemon with settings of this text."""
    async with contextlib.AsyncExitStack() as stack:
        file = folder / "controller.yml"
        file.write_text(text)
        yield await Place(folder, stack).run("--config", str(file), *more)


@pytest.mark.asyncio
async def test_every_problem_is_told_at_once(tmp_path: pathlib.Path) -> None:
    text = "controller: {worker: 3, namespaces: [Team_A]}\nlease: {retry: soon}\ncluster: {client_cert: /x}\n"
    async with ran(tmp_path, text) as daemon:
        assert await daemon.ended() == ExitCode.SETTINGS
    for key in ("controller.workers", "controller.namespaces[0]", "lease.retry", "cluster.client_key"):
        assert key in daemon.log
    assert "Traceback" not in daemon.log


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lease: {duration: 5}", "lease.renew_deadline: found 10, expected less than lease.duration, which is 5"),
        ("cluster: {kubeconfig: /nonexistent/x}", "/nonexistent/x"),
    ],
)
async def test_what_only_a_look_beyond_the_file_shows(tmp_path: pathlib.Path, text: str, said: str) -> None:
    life = f"\nlife: {{run_directory: {tmp_path}/run}}\nhttp: {{enabled: false}}"
    async with ran(tmp_path, text + life) as daemon:
        assert await daemon.ended() == ExitCode.SETTINGS
    assert said in daemon.log
    assert "Traceback" not in daemon.log


@pytest.mark.asyncio
async def test_checking_the_settings_only(tmp_path: pathlib.Path) -> None:
    async with ran(tmp_path, "controller: {workers: 3}", "--check-config") as daemon:
        assert await daemon.ended() == ExitCode.OK
        assert daemon.process.stdout is not None
        assert b"can be used" in await daemon.process.stdout.read()
    async with ran(tmp_path, "controller: {workers: 0}", "--check-config") as daemon:
        assert await daemon.ended() == ExitCode.SETTINGS


@pytest.mark.asyncio
async def test_checking_the_settings_tells_what_a_start_would_fail_by(tmp_path: pathlib.Path) -> None:
    text = f"""
cluster:
  kubeconfig: {tmp_path}/none.conf
  ca_cert: {tmp_path}
lease:
  duration: 15
  renew_deadline: 15
  retry: 20
"""
    async with ran(tmp_path, text, "--check-config") as daemon:
        assert await daemon.ended() == ExitCode.SETTINGS
    for line, said in {
        3: "cluster.kubeconfig: found {}/none.conf, which does not exist, expected a file",
        4: "cluster.ca_cert: found {}, which is no file, expected a file",
        7: "lease.renew_deadline: found 15, expected less than lease.duration, which is 15",
        8: "lease.retry: found 20, expected less than lease.renew_deadline, which is 15",
    }.items():
        assert f"controller.yml line {line}: {said.format(tmp_path)}" in daemon.log
