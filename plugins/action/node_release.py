# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Action of the module of the same name: packs the code here, and sends it to nodes that do not have it."""

from __future__ import annotations

import functools
import io
import os
import pathlib
import tarfile
import tempfile
import typing as t

from ansible.plugins.action import ActionBase
from ansible_collections.nodeops.dra.plugins.module_utils.bridge.release import sha256
from ansible_collections.nodeops.dra.plugins.module_utils.checkpoint.errors import DraError
from ansible_collections.nodeops.dra.plugins.plugin_utils.node_archive import (
    COLLECTION,
    MANIFEST,
    NodeArchive,
    pack,
)

MODULE = "nodeops.dra.node_release"


@functools.lru_cache(maxsize=2)
def packed(collection: pathlib.Path) -> tuple[NodeArchive, str]:
    """The archive of a collection, and the SHA-256 of its manifest."""
    archive = pack(collection)
    with tarfile.open(fileobj=io.BytesIO(archive.content)) as content:
        manifest = content.extractfile(MANIFEST)
        return archive, sha256(manifest.read() if manifest is not None else b"")


class ActionModule(ActionBase):
    """Asks the node first; the archive goes over only when it is needed."""

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """The result of the module, with the version."""
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        try:
            archive, manifest_sum = packed(pathlib.Path(arguments.get("collection") or COLLECTION))
        except DraError as error:
            return {"failed": True, "msg": str(error), **error.facts}
        arguments.update(release=archive.release, manifest_sum=manifest_sum)
        arguments.pop("archive", None)
        result = self._module(arguments, task_vars)
        if result.get("changed") and not result.get("failed") and not self._task.check_mode:
            result = self._send(archive, arguments, task_vars)
        return {**result, "version": archive.version}

    def _module(self, arguments: dict[str, t.Any], task_vars: t.Any) -> dict[str, t.Any]:
        found = self._execute_module(module_name=MODULE, module_args=arguments, task_vars=task_vars)
        return dict(found)

    def _send(self, archive: NodeArchive, arguments: dict[str, t.Any], task_vars: t.Any) -> dict[str, t.Any]:
        here: t.Any = self  # the base class has no types for these
        folder = here._make_tmp_path()
        remote = here._connection._shell.join_path(folder, "node.tar.gz")
        with tempfile.NamedTemporaryFile(suffix=".tar.gz", delete=False) as local:
            local.write(archive.content)
        try:
            here._transfer_file(local.name, remote)
            here._fixup_perms2((folder, remote))
            return self._module({**arguments, "archive": remote}, task_vars)
        finally:
            os.unlink(local.name)
            here._remove_tmp_path(folder, force=True)
