# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""From an HTTP answer or a transport failure to the error that a person can act on."""

from __future__ import annotations

import dataclasses
import email.utils
import re
import time
import typing as t

from . import errors
from .resources import Call
from .secrets import Secrets
from .shapes import Buffer, decoder

#: How much of a server's text goes into ours.
MESSAGE_LIMIT = 600


@dataclasses.dataclass(frozen=True)
class Cause:
    """One entry of ``status.details.causes``."""

    reason: str = ""
    message: str = ""
    field: str = ""


@dataclasses.dataclass(frozen=True)
class StatusDetails:
    """``status.details``."""

    name: str = ""
    group: str = ""
    kind: str = ""
    causes: list[Cause] | None = None
    retry_after_seconds: float | None = None


@dataclasses.dataclass(frozen=True)
class StatusMeta:
    """The list metadata of a Status: a 410 may bring a token with which an inconsistent list can go on."""

    continue_: str = ""


@dataclasses.dataclass(frozen=True)
class Status:
    """metav1.Status: what the API server answers when something failed, and what an ERROR event of a watch holds."""

    message: str = ""
    reason: str = ""
    code: int = 0
    metadata: StatusMeta = dataclasses.field(default_factory=StatusMeta)
    details: StatusDetails | None = None

    @property
    def is_expired(self) -> bool:
        """Whether a resourceVersion is too old: 410, or the reason under another code."""
        return self.code == 410 or self.reason in ("Expired", "Gone", "ResourceExpired")

    @property
    def is_ahead(self) -> bool:
        """Whether a resourceVersion is newer than this server knows."""
        causes = (self.details.causes or []) if self.details else []
        return (
            any(cause.reason == "ResourceVersionTooLarge" for cause in causes)
            or "Too large resource version" in self.message
        )


def parse_status(raw: Buffer, http_status: int = 0) -> Status:
    """The Status in an answer; one with the text of the answer when it holds none (proxies answer in HTML)."""
    try:
        found = decoder(Status)(raw)
    except ValueError:
        text = re.sub(r"<[^>]*>", " ", bytes(raw[:4096]).decode("utf-8", "replace"))
        return Status(message=" ".join(text.split())[:MESSAGE_LIMIT], code=http_status)
    return found


def parse_retry_after(value: str, now: t.Callable[[], float] = time.time) -> float | None:
    """Seconds of a ``Retry-After`` header, given as a number or as a date; None when it is neither."""
    value = value.strip()
    if re.fullmatch(r"\d{1,6}(\.\d*)?", value):
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - now())
    except (ValueError, TypeError, IndexError):
        return None


_CLASSES: dict[int, type[errors.ApiStatusError]] = {
    400: errors.BadRequestError,
    401: errors.UnauthorizedError,
    403: errors.ForbiddenError,
    404: errors.NotFoundError,
    409: errors.ConflictError,
    410: errors.GoneError,
    422: errors.InvalidObjectError,
    429: errors.TooManyRequestsError,
}

#: 1.36 refuses claim status writes with this when the general right is there but the synthetic one is missing.
_REQUIRED_RIGHT = re.compile(r'requires resource="([^"]+)", verb="\[?([^"\]]+)\]?" permission')


def _class_of(call: Call, http_status: int, status: Status) -> type[errors.ApiStatusError]:
    if status.is_expired:
        return errors.GoneError
    if http_status == 409 and status.reason == "AlreadyExists":
        return errors.AlreadyExistsError
    if http_status == 404 and not (status.details and status.details.name):
        return errors.NotServedError
    if http_status >= 500:
        return errors.StaleVersionError if status.is_ahead else errors.ServerFailureError
    return _CLASSES.get(http_status, errors.ApiStatusError)


def from_answer(
    call: Call, url: str, http_status: int, raw: Buffer, retry_after: str = "", secrets: Secrets | None = None
) -> errors.ApiStatusError:
    """The error for an HTTP answer that is no success."""
    return from_status(call, url, http_status, parse_status(raw, http_status), retry_after, secrets)


def from_status(
    call: Call, url: str, http_status: int, status: Status, retry_after: str = "", secrets: Secrets | None = None
) -> errors.ApiStatusError:
    """The error for a Status, from an answer or from an ERROR event."""
    secrets = secrets or Secrets()
    seconds = parse_retry_after(retry_after) if retry_after else None
    if seconds is None and status.details is not None:
        seconds = status.details.retry_after_seconds
    found = _class_of(call, http_status, status)
    server_message = secrets.scrub(status.message)[:MESSAGE_LIMIT].rstrip(".")
    reason = status.reason or _STANDARD.get(http_status, "")
    said = f": {server_message}" if server_message and server_message != reason else ""
    named = " ".join(part for part in (str(http_status), reason) if part)
    message = f"Could not {call.describe()}: {call.method} {secrets.scrub(url)} was answered with {named}{said}."
    facts: dict[str, t.Any] = dict(
        call.facts(), url=secrets.scrub(url), status=http_status, reason=reason, server_message=server_message
    )
    if seconds is not None:
        facts["retry_after"] = seconds
    if found is errors.ForbiddenError:
        facts["right"] = missing_right(call, status.message)
    error = found(message, _hint(found, call, status, facts), **facts)
    error.status, error.reason, error.retry_after = http_status, reason, seconds
    return error


_STANDARD = {
    301: "redirect",
    302: "redirect",
    307: "redirect",
    308: "redirect",
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    407: "ProxyAuthenticationRequired",
    409: "Conflict",
    410: "Gone",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    502: "BadGateway",
    503: "ServiceUnavailable",
    504: "Timeout",
}


def missing_right(call: Call, server_message: str) -> dict[str, str]:
    """The right that a 403 says is missing: that of the request, unless the server names another one."""
    resource, verb = call.resource, call.verb
    named = _REQUIRED_RIGHT.search(server_message)
    if named:
        resource, verb = named.group(1), named.group(2)
    return {"api_group": call.group, "resource": resource, "verb": verb, "namespace": call.namespace}


def _hint(found: type[errors.ApiStatusError], call: Call, status: Status, facts: t.Mapping[str, t.Any]) -> str:
    if found is errors.ForbiddenError:
        return _forbidden_hint(call, facts["right"])
    if found is errors.TooManyRequestsError:
        wait = f"in {facts['retry_after']:g} s" if "retry_after" in facts else "later"
        return f"Try again {wait}; if it stays, lower qps and workers, or give this user a flow schema of its own."
    if found is errors.NotServedError:
        what = f"{call.group or 'the core group'} in this version" if call.plural else "this path"
        return f"The server does not serve {what}: compare `kubectl api-resources` and the server's --runtime-config."
    if found is errors.NotFoundError and status.details and status.details.kind == "namespaces":
        return f'Check that the namespace exists: `kubectl get namespace "{call.namespace}"`.'
    return _HINTS.get(found, "See the API server's log for this request.")


def _forbidden_hint(call: Call, right: t.Mapping[str, str]) -> str:
    if not right["resource"]:
        return (
            f'Grant verb "{right["verb"]}" on the URL {call.path} to this user (a ClusterRole with nonResourceURLs, '
            "such as system:discovery)."
        )
    scope = f" -n {right['namespace']}" if right["namespace"] else " --all-namespaces"
    plain, _unused, subresource = right["resource"].partition("/")
    sub = f" --subresource={subresource}" if subresource else ""
    target = f"{plain}.{right['api_group']}" if right["api_group"] else plain
    return (
        f'Grant verb "{right["verb"]}" on "{right["resource"]}" in API group "{right["api_group"]}" '
        "to this user with a (Cluster)Role and binding; check with "
        f"`kubectl auth can-i {right['verb']} {target}{sub}{scope}`."
    )


_HINTS: dict[type[errors.ApiStatusError], str] = {
    errors.BadRequestError: "Compare the request with what this release of Kubernetes accepts.",
    errors.UnauthorizedError: (
        "The token or certificate has expired, was revoked, or belongs to another cluster: renew it, and check which "
        "kubeconfig and context are used."
    ),
    errors.NotFoundError: "It was deleted, or never existed under this name.",
    errors.ConflictError: "Somebody else changed the object: read it again and repeat the change on what is there now.",
    errors.AlreadyExistsError: "Read the existing object and decide whether it is the wanted one.",
    errors.GoneError: "List again and watch from the new version.",
    errors.InvalidObjectError: "Correct the named fields.",
    errors.ServerFailureError: "Try again; if it stays, look at the API server and at proxies or balancers before it.",
    errors.StaleVersionError: "Try again: this API server lags behind another one that was asked before.",
}
