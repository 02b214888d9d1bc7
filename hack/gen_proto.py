# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Compile proto/ into plugins/module_utils/wire: message descriptors as Python source, and type stubs.

Each folder of proto/ that holds .proto files is one API version and becomes one entry of ``_descriptors.py``: its files
and everything they import, as a FileDescriptorSet, compressed. An entry is loaded into a descriptor pool of its own,
because two versions of the DRA API use the same message names for different messages.

``--check`` writes nothing and fails when the files in the tree are not what the .proto files give.
"""

from __future__ import annotations

import argparse
import ast
import base64
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROTO = ROOT / "proto"
WIRE = ROOT / "plugins" / "module_utils" / "wire"
HEADER = """\
# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""
MODULE_START = (
    HEADER
    + '''"""Message descriptors of every gRPC API, made by hack/gen_proto.py from proto/. Do not edit.

One entry an API version: a protobuf FileDescriptorSet (the files and their imports), zlib, base64.
"""

from __future__ import annotations

SETS: dict[str, str] = {
'''
)


def groups() -> dict[str, list[str]]:
    """API version (folder below proto/) -> its .proto files, both as protoc sees them."""
    found: dict[str, list[str]] = {}
    for path in sorted(PROTO.rglob("*.proto")):
        relative = path.relative_to(PROTO)
        found.setdefault(relative.parent.as_posix(), []).append(relative.as_posix())
    return found


def stub_name(group: str) -> str:
    return group.replace("/", "_") + "_pb2"


def protoc(*arguments: str) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{PROTO}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"protoc failed on {' '.join(arguments)}:\n{done.stderr or done.stdout}")


def descriptor_sets(scratch: pathlib.Path) -> dict[str, bytes]:
    sets = {}
    for group, files in groups().items():
        out = scratch / (stub_name(group) + ".ds")
        protoc("--include_imports", f"--descriptor_set_out={out}", *files)
        sets[group] = out.read_bytes()
    return sets


def module_text(sets: dict[str, bytes]) -> str:
    parts = [MODULE_START]
    for group, data in sorted(sets.items()):
        text = base64.b64encode(zlib.compress(data, 9)).decode("ascii")
        parts.append(f'    "{group}": (\n')
        parts.extend(f'        "{line}"\n' for line in textwrap.wrap(text, 108))
        parts.append("    ),\n")
    parts.append("}\n")
    return "".join(parts)


def stubs(scratch: pathlib.Path) -> dict[str, str]:
    """File name in wire/ -> text. One stub per API version, so that imports stay inside the package."""
    texts = {}
    for group, files in groups().items():
        if len(files) != 1:
            raise SystemExit(
                f"proto/{group} holds {len(files)} files; the type stubs need exactly one for each folder."
            )
        protoc(f"--pyi_out={scratch}", *files)
        text = (scratch / files[0].replace(".proto", "_pb2.pyi")).read_text()
        text = re.sub(
            r"^from ([\w.]+) import (\w+_pb2) as",
            lambda m: f"from . import {m[1].replace('.', '_')}_pb2 as",
            text,
            flags=re.M,
        )
        lines = [
            line if " import " in line else re.sub(r"\b_Mapping\b(?!\[)", "_Mapping[str, object]", line)
            for line in text.splitlines()
        ]
        texts[stub_name(group) + ".pyi"] = (
            f"{HEADER}# Types only, made by hack/gen_proto.py: never imported at run time.\n# ruff: noqa\n# fmt: off\n"
            + "\n".join(lines).rstrip()
            + "\n"
        )
    return texts


def sets_in(path: pathlib.Path) -> dict[str, bytes]:
    """What a generated module holds. Compared after decompression: zlib builds differ in their output."""
    if not path.exists():
        return {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.AnnAssign) and node.value and ast.unparse(node.target) == "SETS":
            return {k: zlib.decompress(base64.b64decode(v)) for k, v in ast.literal_eval(node.value).items()}
    return {}


def differences(sets: dict[str, bytes], stub_texts: dict[str, str]) -> list[str]:
    found = []
    if sets_in(WIRE / "_descriptors.py") != sets:
        found.append("_descriptors.py")
    for name, text in stub_texts.items():
        path = WIRE / name
        if not path.exists() or path.read_text() != text:
            found.append(name)
    found.extend(path.name for path in WIRE.glob("*_pb2.pyi") if path.name not in stub_texts)
    return sorted(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail when the tree differs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sets, stub_texts = descriptor_sets(pathlib.Path(folder)), stubs(pathlib.Path(folder))
    changed = differences(sets, stub_texts)
    if options.check:
        if changed:
            sys.stderr.write(
                f"plugins/module_utils/wire is not what proto/ gives: {', '.join(changed)}. Run make proto.\n"
            )
        return 1 if changed else 0
    WIRE.mkdir(parents=True, exist_ok=True)
    for name in changed:
        if name == "_descriptors.py":
            (WIRE / name).write_text(module_text(sets))
        elif name in stub_texts:
            (WIRE / name).write_text(stub_texts[name])
        else:
            (WIRE / name).unlink()
    sys.stdout.write(f"wire: {len(sets)} API versions, {', '.join(changed) or 'nothing changed'}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
