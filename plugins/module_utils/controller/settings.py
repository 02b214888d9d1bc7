# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""How the controller is set up."""

from __future__ import annotations

import dataclasses

from ..kube.reflector import ReflectorSettings


@dataclasses.dataclass(frozen=True)
class Switches:
    """Features that templates may use. Off: no claim is made from a template that asks for it, and an event says so."""

    admin_access: bool = True
    prioritized_list: bool = True


@dataclasses.dataclass(frozen=True)
class ControllerSettings:
    """``workers`` as many as the original has. ``namespaces`` empty: all.

    A key that fails comes again after a delay that doubles from 5 ms up to ``longest_delay``. ``sweep`` is the time
    between two looks at everything, for what events may have missed. ``grace`` is how long a pod's trouble that mostly
    passes by itself lasts before an event tells of it; ``tell_again`` when an event is repeated while the trouble
    lasts. ``drain`` is the time for requests under way when the controller is stopped. All in seconds.
    """

    workers: int = 50
    namespaces: tuple[str, ...] = ()
    switches: Switches = Switches()
    allow_alpha: bool = True
    pod_groups: bool = True
    check_rights: bool = True
    longest_delay: float = 1000.0
    sweep: float = 600.0
    grace: float = 5.0
    tell_again: float = 1200.0
    drain: float = 5.0
    host: str = ""
    reflector: ReflectorSettings = dataclasses.field(default_factory=ReflectorSettings)
