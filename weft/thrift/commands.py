"""`weft switch` with its Thrift port."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
from collections.abc import Iterator

from weft.switch.cli import switch as without_thrift
from weft.system.thrift_ports import Served, reachable

_LOGGER = logging.getLogger(__name__)


@contextlib.contextmanager
def _serving(port: int, address: str, device_id: int, has_tls: bool) -> Iterator[None]:
    """Serve a switch's Thrift port. Raises OSError if another process has it."""
    if has_tls:
        _LOGGER.warning("--thrift-port has no effect: it would let clients without a certificate in")
        yield
        return
    from weft.thrift.server import ThriftServers  # it imports the controller, which other switches need not wait for

    # A Unix socket opens for its owner alone, and so must the port that leads to it.
    users = {0, os.geteuid()} if address.startswith("unix:") else None
    with ThriftServers({port: Served(reachable(address), device_id)}, users) as servers:
        for error in servers.failures.values():
            raise OSError(error.errno, error.strerror, f"Thrift port {port}")
        _LOGGER.info("Thrift on 127.0.0.1:%d", port)
        yield


switch = copy.copy(without_thrift)
switch.thrift = _serving
