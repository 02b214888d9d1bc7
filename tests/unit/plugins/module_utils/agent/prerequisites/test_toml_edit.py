# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Keys of one table are set, and the rest of the text stays letter for letter."""

from __future__ import annotations

import difflib

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.preflight.toml_text import NoTomlError, read_toml
from ansible_collections.nodeops.dra.plugins.module_utils.agent.prerequisites.marked_lines import without_marks
from ansible_collections.nodeops.dra.plugins.module_utils.agent.prerequisites.toml_edit import (
    NotEditableError,
    with_values,
)

TABLE = ("plugins", "io.containerd.grpc.v1.cri")
NAME = 'plugins."io.containerd.grpc.v1.cri"'

EDITABLE = {
    "nothing": "",
    "no end": "version = 2",
    "header": f"version = 2\n[{NAME}]\n",
    "header with a comment": f"version = 2\n  [{NAME}] # of Kubernetes\n\n    # a comment\n    sandbox_image = 'x'\n",
    "off": f"[{NAME}]\n\tenable_cdi = false # not yet\n\tcdi_spec_dirs = [\n\t  '/a', # one\n\t  '/b'\n\t]\n\tz = 1\n",
    "only a part of it": f"version = 2\n[{NAME}.containerd.runtimes.runc.options]\n  SystemdCgroup = true\n",
    "part before the whole": f"[{NAME}.registry]\n  config_path = '/x'\n[{NAME}]\n  a = 1\n[{NAME}.cni]\n",
    "dotted": "plugins.'io.containerd.grpc.v1.cri'.enable_cdi = false\n",
    "dotted below plugins": "[plugins]\n'io.containerd.grpc.v1.cri'.enable_cdi = false\n"
    "'io.containerd.grpc.v1.cri'.cdi_spec_dirs = []\n",
    "like a header in a string": f'a = """\n[{NAME}]\nenable_cdi = false\n"""\n[[b]]\n[[b]]\nc = [\n"[x]"\n]\n',
    "windows": f"version = 2\r\n[{NAME}]\r\nenable_cdi = false\r\n",
    "same name elsewhere": "[plugins.other]\nenable_cdi = false\n",
}


@pytest.mark.parametrize("text", EDITABLE.values(), ids=EDITABLE)
def test_keys_are_set_and_nothing_else(text: str) -> None:
    result = with_values(text, TABLE, {"enable_cdi": True})
    expected = read_toml(text)
    expected.setdefault("plugins", {}).setdefault(TABLE[1], {})["enable_cdi"] = True
    assert read_toml(result) == expected
    assert without_marks(result) == text
    assert with_values(result, TABLE, {"enable_cdi": True}) == result


@pytest.mark.parametrize("text", [EDITABLE["off"], EDITABLE["header"], EDITABLE["windows"]])
def test_lists_of_several_lines_are_replaced_whole(text: str) -> None:
    given = ["/cdi/with blank", '/cdi/with "quotes" \\ and \x7f', "/cdi/ü"]
    result = with_values(text, TABLE, {"cdi_spec_dirs": given})
    assert read_toml(result)["plugins"][TABLE[1]]["cdi_spec_dirs"] == given
    assert without_marks(result) == text


def test_one_line_is_added() -> None:
    text = EDITABLE["header with a comment"]
    result = with_values(text, TABLE, {"enable_cdi": True})
    added = [line for line in difflib.ndiff(text.splitlines(), result.splitlines()) if not line.startswith("  ")]
    assert added == ["+     enable_cdi = true  # nodeops.dra"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("plugins = { 'io.containerd.grpc.v1.cri' = { enable_cdi = false } }\n", id="inline table"),
        pytest.param("[plugins]\n'io.containerd.grpc.v1.cri' = { enable_cdi = false }\n", id="inline below a header"),
        pytest.param("[plugins]\n'io.containerd.grpc.v1.cri'.sandbox_image = 'x'\n", id="dotted without the key"),
        pytest.param("plugins = 1\n", id="no table"),
        pytest.param("[plugins]\n'io.containerd.grpc.v1.cri' = 1\n", id="value"),
        pytest.param(f"[[{NAME}]]\n", id="list of tables"),
    ],
)
def test_what_cannot_be_edited_is_refused(text: str) -> None:
    with pytest.raises(NotEditableError, match="cri") as caught:
        with_values(text, TABLE, {"enable_cdi": True})
    assert "by hand" in caught.value.hint


def test_what_is_no_toml_is_refused() -> None:
    with pytest.raises(NoTomlError):
        with_values("[plugins\n", TABLE, {"enable_cdi": True})
