# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Every refusal of the API server, with the status code, reason, message and details that Kubernetes gives."""

from __future__ import annotations

import typing as t

from ...checkpoint.errors import DraError
from .json_text import Json


class ApiError(DraError):
    """A request that is answered with a ``Status`` object of kind Failure.

    ``details`` is None where Kubernetes sends no details at all and {} where it sends an empty object.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Json | None = None,
        headers: t.Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details
        self.headers = dict(headers or {})
        self.metadata: Json = {}

    def status(self) -> Json:
        """The body of the answer."""
        body: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def qualified(name: str, group: str) -> str:
    """``resourceclaims.resource.k8s.io``; a name of the core group stands alone."""
    return f"{name}.{group}" if group else name


def details_of(group: str, kind: str, name: str = "", **more: t.Any) -> Json:
    """Details as Kubernetes orders them, empty parts left out. ``kind`` is a plural name or a kind, case by case."""
    parts = {"name": name, "group": group, "kind": kind, **more}
    return {key: value for key, value in parts.items() if value not in ("", None)}


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    subject = qualified(plural, group) + (f' "{name}"' if name else "")
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", details_of(group, plural, name))


def no_such_path() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def not_found(group: str, plural: str, name: str) -> ApiError:
    message = f'{qualified(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, details_of(group, plural, name))


def method_not_allowed() -> ApiError:
    return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_acceptable(accepted: str) -> ApiError:
    return ApiError(406, "NotAcceptable", f"only the following media types are accepted: {accepted}")


def already_exists(group: str, plural: str, name: str) -> ApiError:
    message = f'{qualified(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, details_of(group, plural, name))


def conflict(group: str, plural: str, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, details_of(group, plural, name))


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def expired(message: str) -> ApiError:
    return ApiError(410, "Expired", message)


def too_old(asked: int, oldest: int) -> ApiError:
    return expired(f"too old resource version: {asked} ({oldest})")


def too_large_body(limit: int) -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")


def unsupported_media_type(accepted: t.Sequence[str]) -> ApiError:
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return ApiError(415, "UnsupportedMediaType", message)


def rejected_patch() -> ApiError:
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def too_many_requests(seconds: int) -> ApiError:
    return ApiError(
        429,
        "TooManyRequests",
        "Too many requests, please try again later.",
        {"retryAfterSeconds": seconds},
        {"Retry-After": str(seconds)},
    )


def too_new(asked: int, current: int) -> ApiError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, details, {"Retry-After": "1"})


def internal(message: str, code: int = 500) -> ApiError:
    reasons = {500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout", 429: "TooManyRequests"}
    return ApiError(code, reasons.get(code, "InternalError"), message, {})
