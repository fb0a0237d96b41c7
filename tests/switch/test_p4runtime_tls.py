"""P4Runtime over TLS: server certificates, and certificates of clients."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from tests.refusals import refused
from weft.switch.oracle import OracleSwitch
from weft.switch.p4runtime.device import Device
from weft.switch.p4runtime.service import API_VERSION, Server
from weft.switch.p4runtime.tls import ServerTls, TlsError

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificates with openssl")


class Authority:
    """A certificate authority of its own, with one server and one client."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self.certificate = folder / "ca.pem"
        subject = ["-subj", "/CN=authority", "-days", "2", "-nodes"]
        self._openssl("req", "-x509", *_NEW_KEY, "ca.key", "-out", "ca.pem", *subject)

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self._folder, check=True, capture_output=True)

    def issue(self, name: str) -> tuple[Path, Path]:
        """Certificate and key of `name`, which is also an alternative name."""
        self._openssl("req", *_NEW_KEY, f"{name}.key", "-out", f"{name}.csr", "-nodes", "-subj", f"/CN={name}")
        (self._folder / "names").write_text(f"subjectAltName=DNS:{name},IP:127.0.0.1")
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
        self._openssl("x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signed)
        return self._folder / f"{name}.pem", self._folder / f"{name}.key"


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-keyout")
Ask = Callable[[ServerTls | None, grpc.ChannelCredentials | None], str]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def ask() -> Ask:
    """The API version that a server with this TLS reports to a client with these credentials (None: without TLS)."""

    def version(tls: ServerTls | None, credentials: grpc.ChannelCredentials | None) -> str:
        server = Server({1: Device(1, OracleSwitch(), 510)}, "127.0.0.1:0", tls)
        server.start()
        channel = (
            grpc.insecure_channel(server.address)
            if credentials is None
            else grpc.secure_channel(server.address, credentials)
        )
        try:
            stub = p4r_grpc.P4RuntimeStub(channel)
            answer = stub.Capabilities(p4r.CapabilitiesRequest(), timeout=10)
            return str(answer.p4runtime_api_version)
        finally:
            channel.close()
            server.stop()

    return version


def test_a_client_that_trusts_the_authority_is_served(authority: Authority, ask: Ask) -> None:
    trusting = grpc.ssl_channel_credentials(authority.certificate.read_bytes())
    assert ask(ServerTls(*authority.issue("server")), trusting) == API_VERSION


def test_a_client_without_tls_or_trust_is_not_served(authority: Authority, ask: Ask, tmp_path: Path) -> None:
    tls = ServerTls(*authority.issue("server"))
    stranger = Authority(tmp_path / "stranger")
    for credentials in (None, grpc.ssl_channel_credentials(stranger.certificate.read_bytes())):
        with pytest.raises(grpc.RpcError) as caught:
            ask(tls, credentials)
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE


def test_mutual_tls_wants_a_certificate_of_the_same_authority(authority: Authority, ask: Ask, tmp_path: Path) -> None:
    tls = ServerTls(*authority.issue("server"), authority.certificate, require_client_certificate=True)
    root = authority.certificate.read_bytes()
    certificate, key = authority.issue("client")
    assert ask(tls, grpc.ssl_channel_credentials(root, key.read_bytes(), certificate.read_bytes())) == API_VERSION
    forged, forged_key = Authority(tmp_path / "stranger").issue("client")
    for credentials in (
        grpc.ssl_channel_credentials(root),
        grpc.ssl_channel_credentials(root, forged_key.read_bytes(), forged.read_bytes()),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            ask(tls, credentials)
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE


def test_unusable_files_are_named(authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.issue("server")
    _, other_key = authority.issue("other")
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    with refused(TlsError, problem="No such file"):
        ServerTls(tmp_path / "absent.pem", key).credentials()
    with refused(TlsError, problem="other.key: KEY_VALUES_MISMATCH"):
        ServerTls(certificate, other_key).credentials()
    with refused(TlsError, problem="CA certificate"):
        ServerTls(certificate, key, text).credentials()
    with refused(TlsError, problem="no CA certificate"):
        ServerTls(certificate, key, require_client_certificate=True).credentials()
