# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""How a module ends: with a result, or with a message that says what failed and what to do next."""

from __future__ import annotations

import getpass
import os
import typing as t

from ..checkpoint.errors import DraError

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

Result = dict[str, t.Any]


def run(module: AnsibleModule, work: t.Callable[[], Result]) -> t.NoReturn:
    """Do the work and exit with its result; an expected failure becomes ``fail_json`` with its facts."""
    try:
        result = work()
    except DraError as error:
        module.fail_json(**error.to_dict())
    module.exit_json(**result)
    raise AssertionError("exit_json does not return")


def with_diff(module: AnsibleModule, result: Result) -> Result:
    """The result with ``diff`` made of its ``before`` and ``after``, which are not returned otherwise."""
    before, after = result.pop("before"), result.pop("after")
    if module._diff:
        result["diff"] = {"before": before, "after": after}
    return result


def with_file_diffs(module: AnsibleModule, result: Result) -> Result:
    """The same for ``before`` and ``after`` that are the texts of files by path: a diff line by line for each."""
    before, after = result.pop("before"), result.pop("after")
    if module._diff:
        result["diff"] = [
            {"before": before[path], "after": after[path], "before_header": path, "after_header": path}
            for path in sorted(before)
        ]
    return result


def who() -> str:
    """Who runs the module, for audit logs. Images often have users without a name."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"user {os.getuid()}"
    return f"{name} through Ansible"
