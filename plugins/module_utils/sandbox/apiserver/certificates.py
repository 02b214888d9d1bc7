# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""A certificate for TLS that lives as long as the server: made by the openssl command, signed by itself."""

from __future__ import annotations

import pathlib
import shutil
import ssl
import subprocess

from ...checkpoint.errors import DraError


def make_certificate(folder: pathlib.Path, host: str) -> tuple[pathlib.Path, pathlib.Path]:
    """Certificate and private key for ``host``, as PEM files in ``folder``. DraError without the openssl command."""
    certificate, key = folder / "tls.crt", folder / "tls.key"
    program = shutil.which("openssl")
    if program is None:
        raise DraError(
            "A certificate for TLS cannot be made: the command openssl was not found.",
            "Install openssl, or name certificate and private key of your own.",
        )
    kind = "IP" if host.replace(".", "").isdigit() or ":" in host else "DNS"
    names = f"subjectAltName={kind}:{host},DNS:localhost,IP:127.0.0.1"
    command = [
        program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
        "-days", "7", "-subj", "/CN=nodeops.dra sandbox", "-addext", names,
        "-keyout", str(key), "-out", str(certificate),
    ]  # fmt: skip
    made = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if made.returncode:
        raise DraError(
            f"A certificate for TLS cannot be made: openssl ended with status {made.returncode}.",
            "See what it printed, or name certificate and private key of your own.",
            output=made.stderr[-2000:],
        )
    key.chmod(0o600)
    return certificate, key


def server_context(certificate: pathlib.Path, key: pathlib.Path) -> ssl.SSLContext:
    """TLS for the server's end. DraError when the files cannot be used."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise DraError(
            f"The certificate {certificate} with the key {key} cannot be used: {error}.",
            "Name a PEM certificate and its unencrypted PEM key.",
            path=str(certificate),
        ) from error
    return context
