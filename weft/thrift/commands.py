"""`weft switch` with its Thrift port, by which simple_switch_CLI and p4-utils' controllers find the switch."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
from collections.abc import Iterator

from weft.command_errors import say_error
from weft.errors import EnvironmentLacksError
from weft.switch.cli import switch as without_thrift
from weft.system.thrift_ports import Served, announced, reachable

_LOGGER = logging.getLogger(__name__)


@contextlib.contextmanager
def _serving(port: int, address: str, device_id: int, has_tls: bool) -> Iterator[None]:
    """Serve a switch's Thrift port and announce it. Raises OSError if another process has the port."""
    if has_tls:
        _LOGGER.warning("--thrift-port has no effect: it would let clients without a certificate in")
        yield
        return
    from weft.thrift.server import ThriftServers  # it imports the controller, which other switches need not wait for

    # A Unix socket opens for its owner alone, and so must the port that leads to it.
    users = {0, os.geteuid()} if address.startswith("unix:") else None
    served = {port: Served(reachable(address), device_id)}
    with contextlib.ExitStack() as stack:
        servers = stack.enter_context(ThriftServers(served, users))
        for error in servers.failures.values():
            raise OSError(error.errno, error.strerror, f"Thrift port {port}")
        # Only now, as the port may be another switch's.
        try:
            stack.enter_context(announced(served))
        except (EnvironmentLacksError, OSError) as error:
            say_error(f"simple_switch_CLI will not find this switch: {error}")
        _LOGGER.info("Thrift on 127.0.0.1:%d", port)
        yield


switch = copy.copy(without_thrift)
switch.thrift = _serving
