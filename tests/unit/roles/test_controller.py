# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The role ``controller`` as a person runs it, on an embedded API server."""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import sys
import typing as t

import pytest
import yaml
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.server import ApiServer
from ansible_collections.nodeops.dra.plugins.module_utils.sandbox.apiserver.settings import ServerSettings

from ..playbooks.runner import COLLECTIONS, LOCAL, Played

ROLE = pathlib.Path(__file__).resolve().parents[3] / "roles" / "controller"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


async def run(folder: pathlib.Path, *arguments: str, **variables: t.Any) -> Played:
    """One run of the role."""
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars": {**LOCAL, "controller_kubeconfig": str(folder / "admin.conf"), **variables},
        "roles": ["nodeops.dra.controller"],
    }
    (folder / "play.yml").write_text(json.dumps([play]))
    process = await asyncio.create_subprocess_exec(
        str(pathlib.Path(sys.executable).parent / "ansible-playbook"),
        *("-i", "localhost,", *arguments, "play.yml"),
        cwd=folder,
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": COLLECTIONS,
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_NOCOLOR": "1",
            "PYTHONPATH": COLLECTIONS,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    text = (await process.communicate())[0].decode()
    return Played(process.returncode or 0, text)


@pytest.mark.asyncio
@pytest.mark.report("F101")
async def test_checked_deployed_found_and_removed(tmp_path: pathlib.Path) -> None:
    async with ApiServer(ServerSettings(auto_namespaces=True)) as server:
        (tmp_path / "admin.conf").write_text(json.dumps(server.kubeconfig()))
        image = {"controller_image": "registry.example/controller:1"}

        def deployed() -> int:
            kind = server.served("apps/v1", "deployments").kind
            return len(list(server.cluster.collection(kind).in_namespace("nodeops-dra")))

        for arguments, changed, there in ((["--check"], 1, 0), ([], 1, 1), ([], 0, 1), (["--check"], 0, 1)):
            played = await run(tmp_path, *arguments, **image)
            assert played.status == 0, played.text
            assert (played.count("localhost", "changed"), deployed()) == (changed, there)
        for changed in (1, 0):
            played = await run(tmp_path, controller_state="absent", controller_purge=True)
            assert played.status == 0, played.text
            assert (played.count("localhost", "changed"), deployed()) == (changed, 0)


@pytest.mark.asyncio
async def test_an_image_that_says_nothing_is_refused_before_anything_is_asked(tmp_path: pathlib.Path) -> None:
    played = await run(tmp_path, controller_image="controller")
    assert played.status == 2
    assert 'controller_image is \\"controller\\", expected an image with a tag or a digest' in played.text


def test_defaults_and_specification_agree() -> None:
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    options = yaml.safe_load((ROLE / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    assert {name: option["default"] for name, option in options.items()} == defaults
