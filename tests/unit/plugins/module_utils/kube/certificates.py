# Copyright (c) 2026 nodeops.dra contributors
# SPDX-License-Identifier: Apache-2.0
"""An authority and certificates from it, for tests that speak TLS."""

from __future__ import annotations

import pathlib
import shutil
import ssl
import subprocess

import pytest


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder: pathlib.Path, name: str = "test authority") -> None:
        if shutil.which("openssl") is None:
            pytest.skip("needs the command openssl")
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.certificate, self.key = folder / "ca.crt", folder / "ca.key"
        self._run(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
            "-subj", f"/CN={name}", "-keyout", str(self.key), "-out", str(self.certificate),
        )  # fmt: skip

    def issue(self, name: str, alternatives: str = "IP:127.0.0.1") -> tuple[pathlib.Path, pathlib.Path]:
        """Certificate and key for a server or a client."""
        certificate, key, request = (self.folder / f"{name}.{end}" for end in ("crt", "key", "csr"))
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={alternatives}\n")
        self._run(
            "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}",
            "-keyout", str(key), "-out", str(request),
        )  # fmt: skip
        self._run(
            "x509", "-req", "-in", str(request), "-CA", str(self.certificate), "-CAkey", str(self.key),
            "-CAcreateserial", "-days", "2", "-extfile", str(extensions), "-out", str(certificate),
        )  # fmt: skip
        return certificate, key

    def server_context(self, alternatives: str = "IP:127.0.0.1", *, ask_client: bool = False) -> ssl.SSLContext:
        """TLS for a server with a certificate of this authority."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.certificate))
        context.load_cert_chain(*self.issue("server", alternatives))
        if ask_client:
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _run(self, *arguments: str) -> None:
        made = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
