# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between us and the API server, one class for each thing a caller does differently.

Every text names the URL, the verb, the resource and the object, and says what to do next. Texts are built in
``failures.py``, where also every secret of the connection is taken out of them.
"""

from __future__ import annotations

from ..checkpoint.errors import DraError


class KubeError(DraError):
    """Base of everything that this layer raises on purpose.

    Facts: ``verb``, ``method``, ``resource``, ``api_group``, ``namespace``, ``name``, ``url``, where they apply.
    """


class ConfigurationError(KubeError):
    """How to reach the API server is not known: no configuration, or one that contradicts itself."""


class CredentialError(KubeError):
    """The credential could not be had: an exec plugin failed, a token file is empty or gone."""


class UnreachableError(KubeError):
    """No HTTP answer came.

    ``maybe_applied`` tells whether the request may have reached the server: a write that may have must be looked up
    before it is made again. Facts: ``cause``.
    """

    maybe_applied = False


class TlsError(UnreachableError):
    """The two sides do not trust each other: unknown authority, wrong host name, expired certificate."""


class DeadlineError(UnreachableError):
    """No answer within the time that the caller gave. Facts: ``timeout``."""


class MalformedAnswerError(KubeError):
    """The server answered with something that is no JSON of the expected shape."""


class ApiStatusError(KubeError):
    """The API server answered with an error. Facts: ``status``, ``reason``, ``server_message``, ``retry_after``."""

    status = 0
    reason = ""
    #: Seconds that the server asks to wait; None when it does not say.
    retry_after: float | None = None


class BadRequestError(ApiStatusError):
    """400: the request makes no sense to this server."""


class UnauthorizedError(ApiStatusError):
    """401: the server does not know who we are; the token has expired or belongs to another cluster."""


class ForbiddenError(ApiStatusError):
    """403: a right is missing. Facts: ``right`` with ``api_group``, ``resource``, ``verb``, ``namespace``."""


class NotFoundError(ApiStatusError):
    """404: the object does not exist."""


class NotServedError(NotFoundError):
    """404 for the whole path: this group or version is not served (any more). Discover the versions again."""


class ConflictError(ApiStatusError):
    """409: the object changed, or a precondition does not hold."""


class AlreadyExistsError(ConflictError):
    """409: an object of that name exists."""


class GoneError(ApiStatusError):
    """410: the resourceVersion or continue token is too old; list again."""


class InvalidObjectError(ApiStatusError):
    """422: the object breaks a rule of its kind."""


class TooManyRequestsError(ApiStatusError):
    """429: the server asks to slow down. It has not processed the request."""


class ServerFailureError(ApiStatusError):
    """5xx: the server, or a proxy before it, could not answer."""


class StaleVersionError(ServerFailureError):
    """504 "Too large resource version": this server has not caught up with what we have seen."""


class FenceLostError(KubeError):
    """A write was held back because the lease that guards it is not ours any more. Nothing was sent."""


class LeaseLostError(KubeError):
    """The lease could not be renewed in time; the work that it guards was stopped."""
