"""Commands of simple_switch without an equivalent in P4Runtime: queues' depth and rate, and the time.

Weft's switches serve them in addition to P4Runtime (`weft.switch.daemon.manage_service` has the format); others, such
as BMv2, do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from weft.controller.errors import CommandError
from weft.controller.switch_cli.commands import command
from weft.controller.switch_cli.session import CommandSession, Manage
from weft.controller.switch_cli.values import parse_whole
from weft.controller.switch_code import ask_switch
from weft.quantities.limits import MAX_QUEUE_CAPACITY_BYTES
from weft.topologies.networks.model import PACKET_BYTES

MANAGE = "/weft.Switch/Manage"
_MOST_PORT = 511
_MOST_PACKETS = MAX_QUEUE_CAPACITY_BYTES // PACKET_BYTES
_MOST_RATE_PPS = 10**12


def over_grpc(address: str, name: str, device_id: int) -> Manage:
    """Return a function that manages a device of the server at an address; `name` is for errors."""
    return partial(ask_switch, MANAGE, address, name, device_id)


async def manage(session: CommandSession, **request: Any) -> dict[str, Any]:
    """Send a request and return the answer. Raises CommandError if the switch takes none."""
    if session.manage is None:
        raise CommandError("P4Runtime does not offer it, and this switch has no other interface")
    return await session.manage(request)


def _port(words: Sequence[str]) -> dict[str, int]:
    if len(words) > 1:
        raise CommandError(
            f"names the priority {words[1][:80]!r}", valid="only the port; its queues share memory and rate"
        )
    return {"port": parse_whole(words[0], 0, _MOST_PORT, "port")} if words else {}


@command("set_queue_depth", "<packets> [port] [priority]")
async def set_queue_depth(session: CommandSession, words: Sequence[str]) -> str:
    """Set the queue capacity of a port, or of all ports, in packets of the largest size."""
    packets = parse_whole(words[0], 1, _MOST_PACKETS, "packets")
    await manage(session, queue_capacity_bytes=packets * PACKET_BYTES, **_port(words[1:]))
    return ""


@command("set_queue_rate", "<packets_per_second> [port] [priority]")
async def set_queue_rate(session: CommandSession, words: Sequence[str]) -> str:
    """Limit a port, or all ports, to a number of packets per second; 0 removes the limit."""
    rate_pps = parse_whole(words[0], 0, _MOST_RATE_PPS, "packets_per_second")
    await manage(session, rate_pps=rate_pps, **_port(words[1:]))
    return ""


@command("get_time_elapsed")
async def get_time_elapsed(session: CommandSession, words: Sequence[str]) -> str:
    """Show the microseconds since the switch started."""
    return str((await manage(session))["elapsed_us"])


@command("get_time_since_epoch")
async def get_time_since_epoch(session: CommandSession, words: Sequence[str]) -> str:
    """Show the microseconds since the epoch of the switch's clock: 1970, or the start of a virtual-time run."""
    return str((await manage(session))["since_epoch_us"])
