# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Which proxy stands between us and the API server: an option, the kubeconfig, or the environment, decided once."""

from __future__ import annotations

import contextlib
import ipaddress
import typing as t
import urllib.parse


def proxy_for(url: str, configured: str | None, no_proxy: str | None, environ: t.Mapping[str, str]) -> str | None:
    """The proxy for ``url``; None for none.

    ``configured`` comes first; without it HTTPS_PROXY or HTTP_PROXY counts, unless NO_PROXY names the host. The option
    ``no_proxy`` counts for both.
    """
    if bypasses_proxy(url, no_proxy):
        return None
    if configured:
        return configured
    if bypasses_proxy(url, environ.get("NO_PROXY") or environ.get("no_proxy")):
        return None
    name = "HTTPS_PROXY" if url.startswith("https:") else "HTTP_PROXY"
    return environ.get(name) or environ.get(name.lower()) or None


def bypasses_proxy(url: str, no_proxy: str | None) -> bool:
    """Whether a ``no_proxy`` list (hosts, domains, ``*``, addresses, networks; commas between) names this URL."""
    host = (urllib.parse.urlsplit(url).hostname or "").lower()
    for entry in (part.strip().lower() for part in (no_proxy or "").split(",")):
        if not entry:
            continue
        if entry == "*" or host == entry.lstrip(".") or host.endswith("." + entry.lstrip(".")):
            return True
        with contextlib.suppress(ValueError):
            if ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False):
                return True
    return False
