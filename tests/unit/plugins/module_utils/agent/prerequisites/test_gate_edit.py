# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Feature gates are set in a KubeletConfiguration, and the rest of the text stays letter for letter."""

from __future__ import annotations

import sys

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.agent.prerequisites.gate_edit import gates_in, with_gates
from ansible_collections.nodeops.dra.plugins.module_utils.agent.prerequisites.marked_lines import without_marks
from ansible_collections.nodeops.dra.plugins.module_utils.agent.prerequisites.toml_edit import NotEditableError

DRA = "DynamicResourceAllocation"
HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\n# as kubeadm does\nauthentication:\n  webhook:\n    cacheTTL: 0s\n"
TAIL = "kind: KubeletConfiguration\nstaticPodPath: /etc/kubernetes/manifests\nclusterDNS:\n- 10.96.0.10\n"
EDITABLE = {
    "none": "",
    "block": "featureGates:\n  NodeSwap: true\n",
    "block with another indent": "featureGates: # ours\n    # one\n    NodeSwap: true # why\n\n    'Other': false\n",
    "off": f"featureGates:\n  A: true\n  {DRA}: false # not yet\n  B: false\n",
    "off and quoted": f'featureGates:\n  "{DRA}": false\n',
    "empty": "featureGates: {}\n",
    "nothing behind it": "featureGates:\n",
    "in one line": f"featureGates: {{NodeSwap: true, {DRA}: false}}\n",
}


@pytest.fixture(params=["PyYAML", "no PyYAML"])
def _yaml(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "PyYAML":
        pytest.importorskip("yaml")
    else:
        monkeypatch.setitem(sys.modules, "yaml", None)


@pytest.mark.usefixtures("_yaml")
@pytest.mark.parametrize("end", ["\n", "", "\r\n"], ids=["end", "no end", "windows"])
@pytest.mark.parametrize("gates", EDITABLE.values(), ids=EDITABLE)
def test_gates_are_set_and_nothing_else(gates: str, end: str) -> None:
    text = f"---\n{HEAD}{gates}{TAIL}"
    text = text.replace("\n", "\r\n") if end == "\r\n" else text.rstrip("\n") + end
    result = with_gates(text, "/c", {DRA: True, "AnotherGate": True})
    assert gates_in(result, "/c") == {**gates_in(text, "/c"), DRA: True, "AnotherGate": True}
    assert without_marks(result) == text
    assert with_gates(result, "/c", {DRA: True}) == result


def test_a_null_is_no_gates() -> None:
    pytest.importorskip("yaml")
    text = f"featureGates: null # none\n{TAIL}"
    result = with_gates(text, "/c", {DRA: True})
    assert gates_in(result, "/c") == {DRA: True}
    assert without_marks(result) == text


def test_gates_at_the_end_of_the_file() -> None:
    text = f"{TAIL}featureGates:\n  A: true"
    assert gates_in(with_gates(text, "/c", {DRA: True}), "/c") == {"A": True, DRA: True}


def test_nothing_is_written_where_nothing_is_missing() -> None:
    text = f"{TAIL}featureGates: {{{DRA}: true}}"
    assert with_gates(text, "/c", {DRA: True}) is text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param('{"kind": "KubeletConfiguration"}\n', "JSON", id="JSON"),
        pytest.param("kind: Pod\n", "no KubeletConfiguration", id="another kind"),
        pytest.param("", "no KubeletConfiguration", id="empty"),
        pytest.param(f"{TAIL}---\n{TAIL}", "more than one document", id="two documents"),
        pytest.param(f"{TAIL}...\n", "more than one document", id="end of document"),
        pytest.param(f"{TAIL}featureGates: &gates\n  A: true\n", "form", id="anchor"),
        pytest.param(f"{TAIL}featureGates: {{A: true,\n  B: true}}\n", "form", id="flow over lines"),
        pytest.param(f'{TAIL}"featureGates":\n  A: true\n', "form", id="quoted key"),
    ],
)
def test_what_cannot_be_edited_is_refused(text: str, why: str) -> None:
    pytest.importorskip("yaml")
    with pytest.raises(NotEditableError, match=why):
        with_gates(text, "/c", {DRA: True})
