"""Reads a lab's switch with finsy in a process of its own, as users do: `python gnmi_client.py ADDRESS TARGET`.

Prints JSON: the state leaves of all interfaces and Weft's own of all ports, by name; the names and leaves that a
subscription starts with; and the bytes sent that it reports next.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from finsy import GNMIPath
from finsy.gnmiclient import GNMIClient

INTERVAL_NS = 10**8


async def read(address: str, target: str) -> dict[str, Any]:
    """Return what is printed."""
    prefix = GNMIPath(target=target)
    async with GNMIClient(address) as client, asyncio.timeout(60):
        leaves: dict[str, dict[str, Any]] = {}
        for each in await client.get(GNMIPath("interfaces/interface/state"), prefix=prefix):
            leaves.setdefault(each.path["name"], {})[each.path.last] = each.value
        for each in await client.get(GNMIPath("ports/port/state", origin="weft"), prefix=prefix):
            leaves[each.path["name"]][each.path.last] = each.value
        sent = GNMIPath("interfaces/interface/state/counters/out-octets")
        samples = client.subscribe(prefix=prefix)
        samples.sample(sent, sample_interval=INTERVAL_NS)
        samples.on_change(GNMIPath("interfaces/interface/state/oper-status"))
        first = [(each.path["name"], each.path.last) async for each in samples.synchronize()]
        later: dict[str, int] = {}
        async for each in samples.updates():
            later[each.path["name"]] = each.value
            if len(later) == len(leaves):
                break
        samples.cancel()
        return {"leaves": leaves, "first": first, "later": later}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(read(*sys.argv[1:]))))
