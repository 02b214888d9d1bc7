# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""The settings that both daemons have, as schema and as types: log, http and life.

A daemon adds its own sections with :func:`daemon_schema`. Types have no defaults: those are in the schema alone.
"""

from __future__ import annotations

import dataclasses
import typing as t

from .schema import Schema

#: No wait is longer: a larger number is a slip, and the system's timers overflow somewhere.
_DAY = 86400

LEVELS = ("debug", "info", "warning", "error")

_LOG: Schema = {
    "type": "object",
    "description": "What is written to the standard error stream, which systemd puts into the journal.",
    "additionalProperties": False,
    "x-reloadable": True,
    "properties": {
        "level": {
            "enum": list(LEVELS),
            "default": "info",
            "description": "The least important lines that are written. With debug, errors carry their stack trace.",
        },
        "format": {
            "enum": ["text", "json"],
            "default": "text",
            "description": "text writes lines of key=value, json writes one object a line for log collectors.",
        },
        "levels": {
            "type": "object",
            "additionalProperties": {"enum": list(LEVELS)},
            "default": {},
            "examples": [{"kube": "debug", "driver.registrar": "warning"}],
            "description": "Levels of single parts of the daemon, by the name that their lines carry.",
        },
        "repeat_burst": {
            "type": "integer",
            "minimum": 1,
            "default": 5,
            "x-unit": "lines",
            "description": "How often the same line is written within repeat_window; further ones are only counted. "
            "Lines that differ in numbers only are the same.",
        },
        "repeat_window": {
            "type": "number",
            "minimum": 0,
            "maximum": _DAY,
            "default": 60,
            "x-unit": "seconds",
            "description": "How long repeated lines are counted before the next one is written. 0 writes all.",
        },
    },
}

_PATH: Schema = {"pattern": "^/", "x-expected": "an absolute path"}
_FILE: Schema = {**_PATH, "x-file": True}


_TLS: Schema = {
    "type": "object",
    "description": "Serve HTTPS. The files are read again when they change; a pair that does not fit "
    "together is refused and the former one stays in use.",
    "additionalProperties": False,
    "dependentRequired": {"certificate_file": ["key_file"], "key_file": ["certificate_file"]},
    "properties": {
        "certificate_file": {
            "type": ["string", "null"],
            **_FILE,
            "default": None,
            "examples": ["/etc/nodeops-dra/tls.crt"],
            "description": "The certificate and its chain, PEM. Absent: plain HTTP.",
        },
        "key_file": {
            "type": ["string", "null"],
            **_FILE,
            "default": None,
            "examples": ["/etc/nodeops-dra/tls.key"],
            "description": "The private key of the certificate, PEM without a passphrase.",
        },
    },
}


def _http(port: int) -> Schema:
    return {
        "type": "object",
        "description": "The server of /metrics, /healthz and /readyz.",
        "additionalProperties": False,
        "properties": {
            "enabled": {"type": "boolean", "default": True, "description": "Whether there is such a server."},
            "address": {
                "type": "string",
                "minLength": 1,
                "default": "127.0.0.1",
                "examples": ["::1", "0.0.0.0"],  # noqa: S104 - an example of what opens it to others
                "description": "The address to listen on. The default is seen by this machine only; with any other "
                "one, set tls and token_file as well.",
            },
            "port": {
                "type": "integer",
                "minimum": 0,
                "maximum": 65535,
                "default": port,
                "x-unit": "TCP port",
                "description": "The port to listen on. 0 takes any free one, which the log tells.",
            },
            "tls": _TLS,
            "token_file": {
                "type": ["string", "null"],
                **_FILE,
                "default": None,
                "examples": ["/etc/nodeops-dra/metrics.token"],
                "description": "A file with the bearer token that /metrics and ?verbose ask for. It is read again when "
                "it changes. The bare answers of /healthz and /readyz, which say nothing but yes or no, stay open.",
            },
            "max_connections": {
                "type": "integer",
                "minimum": 1,
                "default": 32,
                "x-unit": "connections",
                "description": "How many connections are served at a time; further ones get status 503.",
            },
            "request_timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": _DAY,
                "default": 15,
                "x-unit": "seconds",
                "description": "How long a connection may last from its start to the end of the answer.",
            },
        },
    }


def _life(run_directory: str) -> Schema:
    return {
        "type": "object",
        "description": "How the daemon starts and ends.",
        "additionalProperties": False,
        "properties": {
            "run_directory": {
                "type": "string",
                **_PATH,
                "default": run_directory,
                "description": "The directory of the lock that keeps a second daemon out. It is made when missing.",
            },
            "start_timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": _DAY,
                "default": 300,
                "x-unit": "seconds",
                "description": "How long systemd is asked for patience while the daemon starts. After that it counts "
                "as started but not ready, goes on trying, and says so in its status and in /readyz.",
            },
            "drain_timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": _DAY,
                "default": 25,
                "x-unit": "seconds",
                "x-reloadable": True,
                "description": "How long work under way may take to end after SIGTERM or SIGINT.",
            },
            "check_timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": _DAY,
                "default": 5,
                "x-unit": "seconds",
                "x-reloadable": True,
                "description": "How long one health check may take before it counts as failed.",
            },
        },
    }


def daemon_schema(
    title: str, own: t.Mapping[str, Schema], *, http_port: int, run_directory: str = "/run/nodeops-dra"
) -> Schema:
    """The whole schema of a daemon: its ``own`` sections and settings, then those that both have."""
    common = {"log": _LOG, "http": _http(http_port), "life": _life(run_directory)}
    twice = sorted(set(own) & set(common))
    if twice:
        raise ValueError(f"{', '.join(twice)} belongs to both daemons")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "additionalProperties": False,
        "properties": {**own, **common},
    }


@dataclasses.dataclass(frozen=True)
class LogSettings:
    """The section ``log``."""

    level: str
    format: str
    levels: t.Mapping[str, str]
    repeat_burst: int
    repeat_window: float


@dataclasses.dataclass(frozen=True)
class TlsSettings:
    """The section ``http.tls``."""

    certificate_file: str | None
    key_file: str | None


@dataclasses.dataclass(frozen=True)
class HttpSettings:
    """The section ``http``."""

    enabled: bool
    address: str
    port: int
    tls: TlsSettings
    token_file: str | None
    max_connections: int
    request_timeout: float


@dataclasses.dataclass(frozen=True)
class LifeSettings:
    """The section ``life``."""

    run_directory: str
    start_timeout: float
    drain_timeout: float
    check_timeout: float
