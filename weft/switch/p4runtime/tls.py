"""TLS of the P4Runtime server, configured as by simple_switch_grpc's --grpc-server-* options."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from weft.errors import Refusal


class TlsError(Refusal, ValueError):
    """Certificate, key or certificate authority cannot be used; the message names the file."""


@dataclass(frozen=True, slots=True)
class ServerTls:
    """PEM files. A client's certificate must be issued by `ca_certificate`.

    With `require_client_certificate` every client must present one (mutual TLS).
    """

    certificate: Path
    key: Path
    ca_certificate: Path | None = None
    require_client_certificate: bool = False

    def credentials(self) -> grpc.ServerCredentials:
        """Return gRPC's credentials. Raises TlsError if a file is missing or not PEM, or if key and certificate do not
        match.
        """
        if self.require_client_certificate and self.ca_certificate is None:
            raise TlsError("clients must show a certificate, but there is no CA certificate to check it with")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key)
        except OSError as error:
            raise TlsError(f"certificate {self.certificate}, key {self.key}: {_reason(error)}") from None
        if self.ca_certificate is not None:
            try:
                context.load_verify_locations(self.ca_certificate)
            except OSError as error:
                raise TlsError(f"CA certificate {self.ca_certificate}: {_reason(error)}") from None
        return grpc.ssl_server_credentials(
            [(self.key.read_bytes(), self.certificate.read_bytes())],
            None if self.ca_certificate is None else self.ca_certificate.read_bytes(),
            self.require_client_certificate,
        )


def _reason(error: OSError) -> str:
    # ssl.SSLError is an OSError with OpenSSL's text
    return str(error.reason) if isinstance(error, ssl.SSLError) and error.reason else str(error.strerror or error)
