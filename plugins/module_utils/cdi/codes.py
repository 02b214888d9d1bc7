# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The codes of every finding of this layer. They are documented and never change their meaning."""

from __future__ import annotations

#: A device that a claim needs is defined by no usable spec: its container cannot start.
UNRESOLVED = "cdi_unresolved"
#: Two specs of equal priority define the same device, so runtimes offer neither.
CONFLICT = "cdi_conflict"
#: A spec file is refused by runtimes (error), or has something that some of them refuse (warning).
INVALID_SPEC = "cdi_invalid_spec"
#: A spec file or directory could not be read.
UNREADABLE = "cdi_unreadable"
#: A file in a spec directory is read by no runtime because of its name.
IGNORED_EXTENSION = "cdi_ignored_extension"
#: A directory is read by no runtime: it lies inside a spec directory, or the spec directory itself is a symbolic link.
IGNORED_DIRECTORY = "cdi_ignored_directory"
#: A device is defined again in a directory of higher priority, which wins.
SHADOWED = "cdi_shadowed"
#: A spec belongs to a claim that nobody knows any more.
ORPHAN = "orphan_cdi"
#: A name that a claim carries is no qualified CDI name.
INVALID_NAME = "cdi_invalid_name"
#: A spec directory does not exist.
DIRECTORY_MISSING = "cdi_directory_missing"
#: A spec directory cannot be written by the one who has to.
DIRECTORY_NOT_WRITABLE = "cdi_directory_not_writable"
#: Driver, runtime and this product do not use the same directories.
DIRECTORY_MISMATCH = "cdi_directory_mismatch"
#: Something on the host that an edit needs is not there.
HOST_PATH_MISSING = "cdi_host_path_missing"
#: A container that asked for a CDI device was started without it.
RUNTIME_IGNORED = "cdi_runtime_ignored"

ALL = (
    CONFLICT,
    DIRECTORY_MISMATCH,
    DIRECTORY_MISSING,
    DIRECTORY_NOT_WRITABLE,
    HOST_PATH_MISSING,
    IGNORED_DIRECTORY,
    IGNORED_EXTENSION,
    INVALID_NAME,
    INVALID_SPEC,
    ORPHAN,
    RUNTIME_IGNORED,
    SHADOWED,
    UNREADABLE,
    UNRESOLVED,
)
