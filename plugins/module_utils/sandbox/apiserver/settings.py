# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""How an embedded API server is set up."""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
import random
import typing as t

from ...checkpoint.errors import DraError
from .rights import ADMIN, User

VERSIONS = ("v1", "v1beta2", "v1beta1", "v1alpha3", "v1alpha2")
# The release that preferred a version, for servers that do not say which release they play.
_RELEASE_OF = {
    "v1": (1, 36, 2),
    "v1beta2": (1, 33, 1),
    "v1beta1": (1, 32, 1),
    "v1alpha3": (1, 31, 0),
    "v1alpha2": (1, 30, 0),
}


def wall_clock() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


def time_text(moment: datetime.datetime) -> str:
    """A time as Kubernetes writes it, to the second."""
    date = f"{moment.year:04}-{moment.month:02}-{moment.day:02}"
    return f"{date}T{moment.hour:02}:{moment.minute:02}:{moment.second:02}Z"


@dataclasses.dataclass
class ServerSettings:
    """Settings with defaults that suit a test.

    ``versions``: served versions of resource.k8s.io, best first. ``release``: the Kubernetes release that is played,
    by default the one that preferred the best of ``versions``; it decides limits, claim references in pods and pod
    groups. ``tokens``: bearer token to user; without a token a request is refused unless ``anonymous`` is set.
    ``keep_unknown_fields`` plays a server that is newer than its clients. ``namespaces`` exist from the start.
    ``auto_namespaces`` makes others on first use. ``resource_health`` is the gate ResourceHealthStatus, by default as
    in the release. Durations are seconds.
    """

    host: str = "127.0.0.1"
    port: int = 0
    versions: tuple[str, ...] = ("v1",)
    release: tuple[int, int, int] | None = None
    tokens: dict[str, User] = dataclasses.field(default_factory=lambda: {"sandbox-admin": ADMIN})
    anonymous: User | None = None
    tls: bool = False
    certificate: pathlib.Path | None = None
    private_key: pathlib.Path | None = None
    namespaces: tuple[str, ...] = ("default", "kube-system")
    auto_namespaces: bool = False
    keep_unknown_fields: bool = False
    managed_fields: bool = True
    garbage_collection: bool = True
    allocator: bool = False
    granular_status_rights: bool | None = None
    resource_health: bool | None = None
    history_limit: int = 10_000
    bookmark_seconds: float = 60.0
    watch_seconds: float = 1800.0
    clock: t.Callable[[], datetime.datetime] = wall_clock
    random: random.Random = dataclasses.field(default_factory=random.SystemRandom)

    def __post_init__(self) -> None:
        unknown = [version for version in self.versions if version not in VERSIONS]
        if unknown or not self.versions:
            raise DraError(
                f"The versions {', '.join(self.versions) or '(none)'} of resource.k8s.io cannot be served.",
                f"Choose from {', '.join(VERSIONS)}.",
                versions=list(self.versions),
            )
        self.versions = tuple(version for version in VERSIONS if version in self.versions)
        if self.release is None:
            self.release = _RELEASE_OF[self.versions[0]]
        if self.granular_status_rights is None:
            self.granular_status_rights = self.release >= (1, 36, 0)
        if self.resource_health is None:
            self.resource_health = self.release >= (1, 36, 0)

    @property
    def played_release(self) -> tuple[int, int, int]:
        return t.cast("tuple[int, int, int]", self.release)

    @property
    def classic_pods(self) -> bool:
        """Whether pods refer to claims through ``source``, as up to 1.30."""
        return self.played_release < (1, 31, 0)

    @property
    def reserved_for_limit(self) -> int:
        return 32 if self.played_release <= (1, 32, 0) else 256

    def now(self) -> str:
        """The time as Kubernetes writes it, to the second."""
        return time_text(self.clock())
