# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Answers of a real API server, proxies and balancers, and what a person is told about them."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible_collections.nodeops.dra.plugins.module_utils.kube import errors
from ansible_collections.nodeops.dra.plugins.module_utils.kube.failures import from_answer, parse_retry_after
from ansible_collections.nodeops.dra.plugins.module_utils.kube.resources import Call, call_for, path_call, resource_of
from ansible_collections.nodeops.dra.plugins.module_utils.kube.secrets import Secrets

from .stub_api import status

CLAIMS = resource_of("ResourceClaim")
URL = "https://192.0.2.10:6443/apis/resource.k8s.io/v1/namespaces/team-a/resourceclaims/c1"


def error(call: Call, code: int, body: t.Any, retry_after: str = "") -> errors.ApiStatusError:
    """The error for an answer."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return from_answer(call, URL, code, raw, retry_after)


PATCH_STATUS = call_for(CLAIMS, "patch", "team-a", "c1", "status")
GET = call_for(CLAIMS, "get", "team-a", "c1")
MODIFIED = (
    'Operation cannot be fulfilled on resourceclaims.resource.k8s.io "c1": the object has been modified; please apply '
    "your changes to the latest version and try again"
)
UID = (
    'Operation cannot be fulfilled on ResourceClaim.resource.k8s.io "c1": the UID in the precondition (0) does not '
    "match the UID in record (1). The object might have been deleted and then recreated"
)
NAMED = {"name": "c1", "group": "resource.k8s.io", "kind": "resourceclaims"}
AHEAD = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "x"}], "retryAfterSeconds": 1}


@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        pytest.param(400, status(400, "BadRequest", '"spec.x" is no selector'), errors.BadRequestError, id="400"),
        pytest.param(401, status(401, "Unauthorized"), errors.UnauthorizedError, id="401"),
        pytest.param(403, status(403, "Forbidden"), errors.ForbiddenError, id="403"),
        pytest.param(404, status(404, "NotFound", 'x "c1" not found', **NAMED), errors.NotFoundError, id="object"),
        pytest.param(404, status(404, "NotFound", "the server could not find"), errors.NotServedError, id="version"),
        pytest.param(404, b"404 page not found\n", errors.NotServedError, id="group"),
        pytest.param(409, status(409, "Conflict", MODIFIED, **NAMED), errors.ConflictError, id="modified"),
        pytest.param(409, status(409, "Conflict", UID, **NAMED), errors.ConflictError, id="precondition"),
        pytest.param(409, status(409, "AlreadyExists", "exists", **NAMED), errors.AlreadyExistsError, id="exists"),
        pytest.param(410, status(410, "Expired"), errors.GoneError, id="410"),
        pytest.param(500, status(500, "ResourceExpired"), errors.GoneError, id="expired-as-500"),
        pytest.param(422, status(422, "Invalid", "field is immutable", **NAMED), errors.InvalidObjectError, id="422"),
        pytest.param(429, status(429, "TooManyRequests"), errors.TooManyRequestsError, id="429"),
        pytest.param(502, b"<html><h1>Bad gateway</h1></html>", errors.ServerFailureError, id="html"),
        pytest.param(504, status(504, "Timeout", "Timeout", **AHEAD), errors.StaleVersionError, id="ahead"),
        pytest.param(504, b"", errors.ServerFailureError, id="empty"),
        pytest.param(405, status(405, "MethodNotAllowed"), errors.ApiStatusError, id="other"),
    ],
)
def test_each_answer_has_its_class(code: int, body: t.Any, expected: type[errors.ApiStatusError]) -> None:
    found = error(GET, code, body)
    assert found.__class__ is expected
    assert found.status == code
    assert found.hint
    asked = 'get resourceclaims.resource.k8s.io "c1" in namespace "team-a"'
    assert f"Could not {asked}: GET {URL} was answered with {code}" in str(found)
    assert found.facts["verb"] == "get"
    assert found.facts["url"] == URL


@pytest.mark.report("F101")
def test_a_missing_right_names_itself_and_the_command_that_checks_it() -> None:
    found = error(PATCH_STATUS, 403, status(403, "Forbidden", 'User "u" cannot patch resource'))
    assert found.facts["right"] == {
        "api_group": "resource.k8s.io",
        "resource": "resourceclaims/status",
        "verb": "patch",
        "namespace": "team-a",
    }
    assert "kubectl auth can-i patch resourceclaims.resource.k8s.io --subresource=status -n team-a" in found.hint
    assert 'User "u" cannot patch' in found.message


@pytest.mark.report("F101")
def test_the_right_that_the_server_names_wins() -> None:
    said = 'changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="patch" '
    found = error(PATCH_STATUS, 403, status(403, "Forbidden", said + "permission: no"))
    assert found.facts["right"]["resource"] == "resourceclaims/binding"
    assert 'Grant verb "patch" on "resourceclaims/binding" in API group "resource.k8s.io"' in found.hint


def test_a_url_that_is_forbidden() -> None:
    found = error(path_call("/version"), 403, status(403, "Forbidden"))
    assert 'Grant verb "get" on the URL /version' in found.hint


def test_the_server_may_ask_to_wait_in_the_body() -> None:
    found = error(GET, 504, status(504, "Timeout", "x", **AHEAD))
    assert found.retry_after == 1
    assert error(GET, 429, b"", "7").retry_after == 7


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("3", 3.0),
        ("1.5", 1.5),
        ("Wed, 21 Oct 2015 07:28:10 GMT", 10.0),
        ("Wed, 21 Oct 2015 07:27:00 GMT", 0.0),
        ("soon", None),
        ("-1", None),
        ("", None),
        ("9" * 400, None),
    ],
)
def test_retry_after(value: str, expected: float | None) -> None:
    assert parse_retry_after(value, now=lambda: 1445412480.0) == expected


@pytest.mark.report("F082")
def test_a_server_that_quotes_the_token_is_not_quoted() -> None:
    secrets = Secrets(["tok-SYNTH-1"])
    body = json.dumps(
        status(401, "Unauthorized", "token tok-SYNTH-1: Bearer abcdefghij1234, see https://a:b@h/")
    ).encode()
    found = from_answer(GET, "https://user:pw@h/x", 401, body, secrets=secrets)
    for secret in ("SYNTH", "abcdefghij", "a:b", "pw@"):
        assert secret not in f"{found} {found.facts}"


def test_a_long_text_is_cut() -> None:
    found = error(GET, 500, status(500, "InternalError", "x" * 5000))
    assert len(found.message) < 1000


def test_markup_of_a_proxy_is_left_out() -> None:
    found = error(GET, 502, b"<html><head><title>502</title></head><h1>Bad  gateway</h1></html>")
    assert "502 Bad gateway" in found.message
