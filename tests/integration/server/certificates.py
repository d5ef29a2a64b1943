# SPDX-License-Identifier: Apache-2.0
"""Certificates for servers that speak TLS."""

import subprocess
from pathlib import Path


def make_certificate(directory: Path) -> tuple[Path, Path]:
    """Of a server at 127.0.0.1: the certificate, which is its own authority, and its key."""
    certificate, key = directory / "certificate.pem", directory / "key.pem"
    command = "openssl req -x509 -nodes -days 1 -subj /CN=localhost -newkey ec"
    command += " -addext subjectAltName=IP:127.0.0.1"
    command += f" -pkeyopt ec_paramgen_curve:prime256v1 -keyout {key} -out {certificate}"
    subprocess.run(command.split(), check=True, capture_output=True, timeout=60)
    key.chmod(0o600)
    return certificate, key
