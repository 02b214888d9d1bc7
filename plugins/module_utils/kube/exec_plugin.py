# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""Credentials from a program, as kubeconfig's ``exec`` describes it (client.authentication.k8s.io)."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import json
import os
import signal
import time
import typing as t

from .errors import ConfigurationError, CredentialError
from .secrets import Secrets

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

#: Seconds before the stated end of a credential at which a new one is asked for.
EARLY = 30.0
#: Seconds that the program may take. It may have to ask an identity provider.
TIMEOUT = 60.0
#: What a program may print at most; a credential has a few KiB.
OUTPUT_LIMIT = 1 << 20


class ExecPlugin:
    """Runs the program when a credential is needed, keeps the answer until it expires or a 401 comes.

    One run at a time; callers that come meanwhile wait for it. The program gets no terminal and no input.
    """

    def __init__(
        self,
        config: object,
        cluster: t.Mapping[str, t.Any],
        secrets: Secrets,
        origin: str,
        *,
        environ: t.Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        now: t.Callable[[], float] = time.time,
    ) -> None:
        self._secrets, self._origin, self._timeout, self._now = secrets, origin, timeout, now
        if not isinstance(config, dict) or not isinstance(config.get("command"), str) or not config["command"]:
            raise ConfigurationError(f"{origin} has an exec entry without a command.", "Add command and apiVersion.")
        self.command: str = config["command"]
        self._api_version = config.get("apiVersion")
        if self._api_version not in API_VERSIONS:
            raise ConfigurationError(
                f'exec in {origin} has apiVersion "{self._api_version!s:.60}".',
                f"Use one of {', '.join(API_VERSIONS)}.",
            )
        self._arguments = [str(argument) for argument in config.get("args") or ()]
        self._environment = dict(os.environ if environ is None else environ)
        for entry in config.get("env") or ():
            self._environment[str(entry["name"])] = str(entry["value"])
        self._environment["KUBERNETES_EXEC_INFO"] = json.dumps(self._info(config, cluster))
        self._install_hint = str(config.get("installHint") or "")
        self._lock = asyncio.Lock()
        self._token = ""
        self._certificate: tuple[bytes, bytes] | None = None
        self._expires: float | None = None
        self._runs = 0

    def _info(self, config: t.Mapping[str, t.Any], cluster: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        spec: dict[str, t.Any] = {"interactive": False}
        if config.get("provideClusterInfo"):
            known = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")
            spec["cluster"] = {key: cluster[key] for key in known if cluster.get(key)}
        return {"apiVersion": self._api_version, "kind": "ExecCredential", "spec": spec}

    async def header(self) -> str:
        """The token that the program gave; empty when it gave a certificate alone."""
        if self._runs == 0 or self._is_old():
            await self._run_once(self._runs)
        return f"Bearer {self._token}" if self._token else ""

    async def renew(self) -> bool:
        """Run the program again; True when it gave something else."""
        before = (self._token, self._certificate)
        await self._run_once(self._runs)
        return (self._token, self._certificate) != before

    def certificate(self) -> tuple[bytes, bytes] | None:
        """The certificate and key that the program gave."""
        return self._certificate

    def _is_old(self) -> bool:
        return self._expires is not None and self._now() >= self._expires - EARLY

    async def _run_once(self, seen_runs: int) -> None:
        async with self._lock:
            if self._runs != seen_runs:
                return  # somebody else ran it while we waited
            status = self._parse(await self._run())
            self._token = str(status.get("token") or "")
            certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
            self._certificate = (str(certificate).encode(), str(key).encode()) if certificate and key else None
            self._expires = _timestamp(status.get("expirationTimestamp"))
            self._secrets.add(self._token)
            self._runs += 1
            if not self._token and self._certificate is None:
                raise self._failed("gave neither a token nor a certificate with its key")

    async def _run(self) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                self.command,
                *self._arguments,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=OUTPUT_LIMIT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else "its arguments are unusable"
            raise self._failed(f"could not be started: {reason}") from error
        try:
            async with asyncio.timeout(self._timeout):
                output, complaint = await process.communicate()
        except TimeoutError:
            raise self._failed(f"did not end within {self._timeout:g} s and was killed") from None
        finally:
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # what it started itself holds the pipes too
                await process.wait()
        if process.returncode:
            # What it printed may hold the credential it was refused with; only the error channel is shown, scrubbed.
            said = " ".join(self._secrets.scrub(complaint.decode("utf-8", "replace")).split())[-300:]
            raise self._failed(f"ended with status {process.returncode}" + (f": {said}" if said else ""))
        return output

    def _parse(self, output: bytes) -> dict[str, t.Any]:
        try:
            answer = json.loads(output)
        except ValueError:
            raise self._failed("printed something that is no JSON") from None
        status = answer.get("status") if isinstance(answer, dict) else None
        if not isinstance(status, dict) or answer.get("kind") != "ExecCredential":
            raise self._failed("printed something that is no ExecCredential with a status")
        if answer.get("apiVersion") != self._api_version:
            raise self._failed(f"answered in {answer.get('apiVersion')!s:.60}, asked was {self._api_version}")
        return status

    def _failed(self, what: str) -> CredentialError:
        return CredentialError(
            f'The credential program "{self.command}" of {self._origin} {what}.',
            self._install_hint or "Run it by hand; log in where it asks you to.",
            command=self.command,
        )


def _timestamp(value: object) -> float | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None
