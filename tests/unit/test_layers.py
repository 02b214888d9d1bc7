# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Who may import whom: the layers of ``plugins/module_utils``, read from the import statements."""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import sys
import typing as t

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OURS = "ansible_collections.nodeops.dra.plugins.module_utils"
# Beside the layers, for plugins that run on the control node. It never travels to a node.
CONTROL = "ansible_collections.nodeops.dra.plugins.plugin_utils"

# From the bottom up. A layer imports from itself and from rows below its own; neighbours in a row do not know each
# other.
ROWS = (
    {"checkpoint"},
    {"cdi", "resource", "wire"},
    {"daemon", "driver", "kube"},
    {"controller", "manager"},
    {"agent", "bridge", "sandbox"},
)
RANK = {layer: rank for rank, row in enumerate(ROWS) for layer in row}

# What a layer may import beside the standard library and us, always inside a function. CDI specs may be YAML. `agent`
# serves its local API by gRPC. kubernetes.aio does not hide its HTTP library: `kube` needs aiohttp's exceptions.
# Who calls or serves gRPC also meets protobuf's own errors and its JSON form.
THIRD_PARTY = {
    "cdi": {"jsonschema", "yaml"},
    "wire": {"google"},
    "driver": {"google", "grpc"},
    "kube": {"aiohttp", "msgspec"},
    "daemon": {"aiohttp", "jsonschema", "prometheus_client", "yaml"},
    "agent": {"google", "grpc"},
    "sandbox": {"aiohttp", "google", "grpc"},
}
# ansible is there whenever these run, so they may import it at the top.
ANSIBLE_LAYERS = {"bridge"}
ANSIBLE_PLUGINS = {"action", "doc_fragments", "modules"}
CONTROL_PLUGINS = {"action", "filter", "plugin_utils"}


@dataclasses.dataclass(frozen=True)
class Import:
    """One imported name: ``module`` absolute and dotted, ``name`` what is taken from it (empty for ``import x``)."""

    line: int
    module: str
    name: str
    relative: bool
    deferred: bool  # inside a function
    typing_only: bool


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING") or (
        isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
    )


def imports(tree: ast.Module, package: t.Sequence[str]) -> t.Iterator[Import]:
    """Every import of a parsed file that lives in ``package``."""

    def walk(node: ast.AST, deferred: bool, typing_only: bool) -> t.Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name, "", False, deferred, typing_only)
        elif isinstance(node, ast.ImportFrom):
            base = list(package[: len(package) - node.level + 1]) if node.level else []
            module = ".".join([*base, *(node.module or "").split(".")]).rstrip(".")
            for alias in node.names:
                yield Import(node.lineno, module, alias.name, bool(node.level), deferred, typing_only)
        elif isinstance(node, ast.If) and _is_type_checking(node.test):
            for child in node.body:
                yield from walk(child, deferred, True)
            for child in node.orelse:
                yield from walk(child, deferred, typing_only)
        else:
            inside = deferred or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            for child in ast.iter_child_nodes(node):
                yield from walk(child, inside, typing_only)

    yield from walk(tree, False, False)


class Tree:
    """The Python files of a collection and what is wrong with their imports."""

    def __init__(self, root: pathlib.Path) -> None:
        self.plugins = root / "plugins"
        self.utils = self.plugins / "module_utils"
        self.files = sorted(self.plugins.rglob("*.py"))
        self.edges: dict[str, set[str]] = {}
        self.found: list[str] = []

    def dotted(self, path: pathlib.Path) -> str:
        """Dotted name of a file below module_utils; empty for other plugins."""
        if self.utils not in path.parents:
            return ""
        return ".".join([OURS, *path.relative_to(self.utils).with_suffix("").parts])

    def target(self, item: Import) -> str | None:
        """Dotted name of our file that the import loads, "" for a name that is no file of ours, None if not ours."""
        base = next((one for one in (OURS, CONTROL) if f"{item.module}.".startswith(f"{one}.")), "")
        if not base:
            return None
        folder = self.plugins / base.rpartition(".")[2]
        inner = item.module[len(base) + 1 :].replace(".", "/")
        for candidate in (f"{inner}/{item.name}" if item.name else "", inner):
            endings = (".py", ".pyi") if item.typing_only else (".py",)  # a stub is there for the type checker alone
            if candidate and any((folder / f"{candidate.lstrip('/')}{ending}").is_file() for ending in endings):
                return f"{base}.{candidate.lstrip('/').replace('/', '.')}"
        return ""

    def check(self) -> list[str]:
        """Every violation as ``file:line: what``, sorted."""
        for path in self.files:
            self.check_file(path)
        self.check_cycles()
        return sorted(self.found)

    def check_file(self, path: pathlib.Path) -> None:
        """The rules that one file can break by itself."""
        place = path.relative_to(self.plugins.parent).as_posix()
        if path.name == "__init__.py":
            self.found.append(f"{place}:1: packages here have no __init__.py")
        dotted = self.dotted(path)
        layer = path.relative_to(self.utils).parts[0] if dotted else ""
        if dotted and layer not in RANK:
            self.found.append(f"{place}:1: {layer} is no layer")
            return
        package = dotted.split(".")[:-1] if dotted else []
        kind = path.relative_to(self.plugins).parts[0]
        for item in imports(ast.parse(path.read_text(encoding="utf-8"), str(path)), package):
            where = f"{place}:{item.line}"
            target = self.target(item)
            if target is None:
                self.check_foreign(where, item, layer, kind)
                continue
            if dotted and not item.relative:
                self.found.append(f"{where}: imports of our own files inside module_utils are relative")
            if not target:
                self.found.append(f"{where}: {item.module}.{item.name} does not exist")
            elif target.startswith(f"{CONTROL}.") and kind not in CONTROL_PLUGINS:
                self.found.append(f"{where}: {kind} must not import plugin_utils")
            elif dotted:
                self.check_own(where, dotted, layer, target, item)

    def check_own(self, where: str, dotted: str, layer: str, target: str, item: Import) -> None:
        """Direction of an import between our layers."""
        other = target[len(OURS) + 1 :].split(".")[0]
        if other != layer and RANK.get(other, 99) >= RANK[layer]:
            self.found.append(f"{where}: {layer} must not import {other}")
        if not item.typing_only:
            self.edges.setdefault(dotted, set()).add(target)

    def check_foreign(self, where: str, item: Import, layer: str, kind: str) -> None:
        """Imports of what is neither ours nor the standard library."""
        top = item.module.split(".")[0]
        if top in sys.stdlib_module_names:
            return
        if top == "ansible":
            if layer not in ANSIBLE_LAYERS and kind not in ANSIBLE_PLUGINS:
                self.found.append(f"{where}: {layer or kind} must not import ansible")
            return
        if layer and top not in THIRD_PARTY.get(layer, set()):
            self.found.append(f"{where}: {layer} must not import {top}")
        elif not item.deferred and not item.typing_only:
            self.found.append(f"{where}: {top} is imported at module level")

    def check_cycles(self) -> None:
        """Files that import each other in a circle, each circle once."""
        done: set[str] = set()

        def visit(name: str, trail: list[str]) -> None:
            if name in trail:
                circle = [part.removeprefix(f"{OURS}.") for part in trail[trail.index(name) :]]
                first = circle.index(min(circle))
                self.found.append("circle: " + " -> ".join([*circle[first:], *circle[:first], circle[first]]))
            elif name not in done:
                for target in sorted(self.edges.get(name, ())):
                    visit(target, [*trail, name])
                done.add(name)

        for name in sorted(self.edges):
            visit(name, [])


def write_tree(root: pathlib.Path, files: t.Mapping[str, str]) -> pathlib.Path:
    """A collection with these files below ``plugins``."""
    for name, text in files.items():
        path = root / "plugins" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_layers_of_this_collection() -> None:
    tree = Tree(ROOT)
    assert tree.files
    found = tree.check()
    assert not found, "\n" + "\n".join(found)


def test_what_the_rules_allow(tmp_path: pathlib.Path) -> None:
    files = {
        "module_utils/checkpoint/errors.py": "import os\nclass E(Exception): pass\n",
        "module_utils/wire/messages.py": "def f():\n    from google.protobuf import descriptor_pool\n",
        "module_utils/driver/client.py": (
            "import typing as t\nfrom ..wire import messages\nfrom ..checkpoint.errors import E\n"
            "from . import names\nif t.TYPE_CHECKING:\n    import grpc\n"
        ),
        "module_utils/driver/names.py": "if t.TYPE_CHECKING:\n    from .client import x\n",
        "module_utils/bridge/results.py": "from ansible.module_utils.basic import AnsibleModule\n",
        "modules/claim.py": f"from ansible.module_utils import basic\nfrom {OURS}.bridge.results import x\n",
        "plugin_utils/archive.py": f"from {OURS}.checkpoint.errors import E\n",
        "action/claim.py": f"from ansible.plugins import action\nfrom {CONTROL}.archive import x\n",
    }
    assert Tree(write_tree(tmp_path, files)).check() == []


@pytest.mark.parametrize(
    ("files", "message"),
    [
        pytest.param(
            {"module_utils/checkpoint/a.py": "from ..cdi.b import x\n", "module_utils/cdi/b.py": "x = 1\n"},
            "module_utils/checkpoint/a.py:1: checkpoint must not import cdi",
            id="up",
        ),
        pytest.param(
            {"module_utils/cdi/a.py": "def f():\n    from ..wire import b\n", "module_utils/wire/b.py": ""},
            "module_utils/cdi/a.py:2: cdi must not import wire",
            id="sideways-in-function",
        ),
        pytest.param(
            {
                "module_utils/manager/a.py": "if t.TYPE_CHECKING:\n    from ..agent.b import x\n",
                "module_utils/agent/b.py": "",
            },
            "module_utils/manager/a.py:2: manager must not import agent",
            id="up-for-types",
        ),
        pytest.param(
            {"module_utils/checkpoint/a.py": "def f():\n    import yaml\n"},
            "module_utils/checkpoint/a.py:2: checkpoint must not import yaml",
            id="standard-library-only",
        ),
        pytest.param(
            {"module_utils/driver/a.py": "import grpc.aio\n"},
            "module_utils/driver/a.py:1: grpc is imported at module level",
            id="module-level",
        ),
        pytest.param(
            {"module_utils/driver/a.py": "try:\n    import grpc\nexcept ImportError:\n    grpc = None\n"},
            "module_utils/driver/a.py:2: grpc is imported at module level",
            id="module-level-try",
        ),
        pytest.param(
            {"modules/claim.py": "import yaml\n"},
            "modules/claim.py:1: yaml is imported at module level",
            id="module-level-in-a-module",
        ),
        pytest.param(
            {"module_utils/kube/a.py": "from ansible.module_utils import basic\n"},
            "module_utils/kube/a.py:1: kube must not import ansible",
            id="ansible",
        ),
        pytest.param(
            {"module_utils/kube/a.py": f"from {OURS}.kube import b\n", "module_utils/kube/b.py": ""},
            "module_utils/kube/a.py:1: imports of our own files inside module_utils are relative",
            id="absolute",
        ),
        pytest.param(
            {"module_utils/kube/a.py": "from .gone import x\n"},
            f"module_utils/kube/a.py:1: {OURS}.kube.gone.x does not exist",
            id="missing",
        ),
        pytest.param(
            {"modules/claim.py": f"from {CONTROL}.a import x\n", "plugin_utils/a.py": ""},
            "modules/claim.py:1: modules must not import plugin_utils",
            id="a-module-without-the-control-node",
        ),
        pytest.param(
            {"plugin_utils/a.py": "from ansible import constants\n"},
            "plugin_utils/a.py:1: plugin_utils must not import ansible",
            id="ansible-for-the-build",
        ),
        pytest.param(
            {"action/a.py": f"from {CONTROL}.gone import x\n"},
            f"action/a.py:1: {CONTROL}.gone.x does not exist",
            id="missing-beside-the-layers",
        ),
        pytest.param({"module_utils/misc/a.py": ""}, "module_utils/misc/a.py:1: misc is no layer", id="no-layer"),
        pytest.param(
            {"module_utils/helpers.py": ""}, "module_utils/helpers.py:1: helpers.py is no layer", id="no-folder"
        ),
        pytest.param(
            {"module_utils/kube/__init__.py": ""},
            "module_utils/kube/__init__.py:1: packages here have no __init__.py",
            id="init",
        ),
    ],
)
def test_each_rule_finds_its_violation(tmp_path: pathlib.Path, files: dict[str, str], message: str) -> None:
    assert Tree(write_tree(tmp_path, files)).check() == [f"plugins/{message}"]


def test_a_circle_is_found_once(tmp_path: pathlib.Path) -> None:
    files = {
        "module_utils/kube/a.py": "from .b import x\n",
        "module_utils/kube/b.py": "def f():\n    from . import c\n",
        "module_utils/kube/c.py": "from .a import x\n",
    }
    assert Tree(write_tree(tmp_path, files)).check() == ["circle: kube.a -> kube.b -> kube.c -> kube.a"]
