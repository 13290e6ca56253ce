"""Webhooks over TLS: the certificate must be for the name in the url, whatever address is dialled."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from headrace import JobManager, JobSpec, TemporaryError, connect
from headrace.model import Job
from headrace.webhooks import Limits, deliver, new_secret
from tests.webhooks.receiver import running

NAMES = [x509.DNSName("receiver.example"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of receiver.example, signed by itself; the key stands in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "receiver.example")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(NAMES), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "receiver.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
def server_side(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
async def jobs() -> AsyncIterator[JobManager]:
    async with await connect("memory:") as manager:
        yield manager


async def webhook_of(jobs: JobManager, url: str) -> Job:
    await jobs.submit(JobSpec(type="t", id="j", callback_url=url))
    await jobs.cancel(["j"])
    (webhook,) = await jobs.claim("w")
    return webhook


async def send(jobs: JobManager, url: str, **options: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "secrets": [new_secret()],
        "allow_private": ["127.0.0.1"],
        "resolve": lambda host, port: ["127.0.0.1"],
    }
    return await deliver(jobs, await webhook_of(jobs, url), **given | options)


@pytest.mark.parametrize("host", ["receiver.example", "127.0.0.1"])
async def test_the_name_in_the_url_is_verified(
    jobs: JobManager, server_side: ssl.SSLContext, certificate: Path, host: str
) -> None:
    trusting = ssl.create_default_context(cafile=str(certificate))
    with running(tls=server_side) as receiver:
        url = f"https://{host}:{receiver.port}/"
        assert await send(jobs, url, tls=trusting) == {"status": 200}
        assert receiver.requests[0].headers["host"] == f"{host}:{receiver.port}"


async def test_a_certificate_for_another_name_is_refused(
    jobs: JobManager, server_side: ssl.SSLContext, certificate: Path
) -> None:
    trusting = ssl.create_default_context(cafile=str(certificate))
    with running(tls=server_side) as receiver:
        with pytest.raises(TemporaryError, match="certificate verify failed"):
            await send(jobs, f"https://other.example:{receiver.port}/", tls=trusting)
        assert receiver.requests == []


async def test_an_unknown_authority_is_refused_by_default(
    jobs: JobManager, server_side: ssl.SSLContext
) -> None:
    with running(tls=server_side) as receiver:
        with pytest.raises(TemporaryError, match="certificate verify failed"):
            await send(jobs, f"https://receiver.example:{receiver.port}/")
        assert receiver.requests == []


async def test_a_receiver_that_never_shakes_hands_is_given_up(jobs: JobManager) -> None:
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                # The head of a record that says it is long, then a byte at a time.
                connection.sendall(b"\x16\x03\x03\x40\x00")
                while not over.wait(0.02):
                    try:
                        connection.sendall(b"\x00")
                    except OSError:
                        return

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        try:
            with pytest.raises(TemporaryError, match="time"):
                await send(
                    jobs, f"https://receiver.example:{port}/", limits=Limits(total_seconds=0.5)
                )
        finally:
            over.set()
            thread.join(10)
