# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which gRPC service of a driver is used, chosen from the list that it advertises at registration.

The rules, in this order; strings that mean nothing to us are ignored:

1. The first of ``v1.DRAPlugin`` and ``v1beta1.DRAPlugin`` in the driver's own order: the rule of kubelets since 1.34.
2. ``v1alpha3.NodeService``: drivers of 1.32 and 1.33 that offer nothing newer.
3. A semantic version with major 1, such as ``1.0.0``: drivers of 1.27 to 1.31. See below.
4. Else the driver cannot be used, and the error lists both sides.

**What "1.0.0" can mean.** It was advertised for three APIs: v1alpha2 (1.27), v1alpha3 (1.28 to 1.30) and the one called
v1alpha4 (1.31), of which the last two even share every path on the wire. What is spoken is found out per call:

* The service ``v1alpha3.Node`` is called first. If the driver answers UNIMPLEMENTED, ``v1alpha2.Node`` is used for the
  rest of the registration, as kubelets 1.28 to 1.30 did.
* Requests of v1alpha4 are those of v1alpha3 without resource handles. A claim is sent with its handles if it has some
  (the cluster runs classic DRA), and without if it has none.
* Answers differ in field 1 of each claim: CDI names (strings) in v1alpha3, devices (messages) in v1alpha4. A CDI name
  starts with a letter, an encoded device starts with a field tag, which never is one; so the bytes decide.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from .errors import RegistrationError

# Advertised string -> name of the generation, for the two rules that look at service names.
_CURRENT = {"v1.DRAPlugin": "v1", "v1beta1.DRAPlugin": "v1beta1"}
_ALPHA4 = "v1alpha3.NodeService"
# The health services, in our order of preference.
_HEALTH = {"v1.DRAResourceHealth": "v1", "v1alpha1.DRAResourceHealth": "v1alpha1"}
_SEMVER = re.compile(r"v?(\d+)(\.\d+)+([-+].*)?")

KNOWN = (*_CURRENT, _ALPHA4, "1.x.y")


@dataclasses.dataclass(frozen=True)
class Choice:
    """``generation``: v1, v1beta1, v1alpha4, or ``classic`` for what "1.0.0" can mean.

    ``service`` is the advertised string that decided; ``health`` is v1, v1alpha1 or None.
    """

    generation: str
    service: str
    health: str | None = None


def choose(versions: t.Sequence[str], driver: str = "", socket: str = "") -> Choice:
    """Apply the rules above. RegistrationError when the list is empty or holds nothing that we speak."""
    facts = {"driver": driver, "registration_socket": socket, "versions": list(versions)}
    if not versions:
        raise RegistrationError(
            f"The driver {driver} at {socket} advertises no API version.",
            f"Update the driver: it must list one of {', '.join(KNOWN)}.",
            known=list(KNOWN),
            **facts,
        )
    health = next((name for text, name in _HEALTH.items() if text in versions), None)
    for text in versions:
        if text in _CURRENT:
            return Choice(_CURRENT[text], text, health)
    if _ALPHA4 in versions:
        return Choice("v1alpha4", _ALPHA4, health)
    for text in versions:
        match = _SEMVER.fullmatch(text)
        if match and int(match[1]) == 1:
            return Choice("classic", text, health)
    raise RegistrationError(
        f"The driver {driver} at {socket} advertises {', '.join(versions)}, and none of these is known here: "
        f"known are {', '.join(KNOWN)}.",
        "Update the older of the two.",
        known=list(KNOWN),
        **facts,
    )
