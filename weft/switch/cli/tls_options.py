"""simple_switch_grpc's TLS options, as `weft switch` takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from weft.switch.p4runtime.tls import ServerTls


def _file(name: str, text: str) -> click.Option:
    return click.Option([name], type=click.Path(path_type=Path), metavar="PEM", help=text)


PARAMETERS: tuple[click.Option, ...] = (
    click.Option(["--grpc-server-ssl"], is_flag=True, help="Serve over TLS."),
    _file("--grpc-server-cacert", "Certificate authority that clients' certificates must come from."),
    _file("--grpc-server-cert", "The server's certificate."),
    _file("--grpc-server-key", "The server's private key."),
    click.Option(["--grpc-server-with-client-auth"], is_flag=True, help="Every client must show a certificate."),
)


def server_tls(options: dict[str, Any]) -> ServerTls | None:
    """Take the TLS options out of `options`.

    Raises click.UsageError if they are incomplete, or given without --grpc-server-ssl (where BMv2 warns and serves
    without TLS).
    """
    enabled, authority, certificate, key, client_auth = (options.pop(str(each.name)) for each in PARAMETERS)
    if not enabled:
        if authority or certificate or key or client_auth:
            raise click.UsageError("certificates and keys need --grpc-server-ssl")
        return None
    if certificate is None or key is None:
        raise click.UsageError("--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key")
    return ServerTls(certificate, key, authority, client_auth)
