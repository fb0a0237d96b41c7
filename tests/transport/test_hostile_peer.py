"""Valid packets that no honest peer would send: nothing crashes, hangs or writes where it may not."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transport.header_strategies import packets
from tests.transport.rdma_pair import MS, cabled_pair, random_bytes
from weft.engine import build_packet

REGION_BYTES = 2048
CANARY = 0xA5


@given(
    forgeries=st.lists(
        st.tuples(packets(), st.integers(-3, 20), st.integers(0, 2**12), st.booleans()),
        min_size=1,
        max_size=20,
    )
)
@settings(max_examples=200, deadline=None)
def test_forged_packets_do_no_harm(
    forgeries: list[tuple[tuple[dict[str, Any], bytes], int, int, bool]],
) -> None:
    pair = cabled_pair(path_mtu_bytes=256)
    memory = np.full(3 * REGION_BYTES, CANARY, np.uint8)
    middle = memory[REGION_BYTES : 2 * REGION_BYTES]
    region = pair.b.register(middle, virtual_address=1000)
    pair.b.queue_pair.post_receive(region, 0, 100)
    pair.b.queue_pair.post_write(None, 0, 3000, 0, 1)
    pair.a.queue_pair.post_write(pair.a.register(random_bytes(3000)), 0, 1500, 1000, region.rkey)
    for at, ((headers, payload), psn, address, aim) in enumerate(forgeries):
        headers["destination_mac"], headers["source_mac"] = pair.b.mac, pair.a.mac
        for name in ("flow_label", "identification", "dont_fragment"):
            headers.pop(name, None)
        headers["source_ip"], headers["destination_ip"] = pair.a.ip(4), pair.b.ip(4)
        headers["bth"] |= {"partition_key": 0xFFFF, "psn": psn & 0xFFFFFF}
        if "aggregation" not in headers:
            headers["bth"]["destination_qp"] = 0x102
        if aim and "reth" in headers:
            headers["reth"] = {"virtual_address": address, "rkey": region.rkey, "length_bytes": len(payload)}
        pair.engine.inject(pair.b.nic, 0, build_packet(headers, payload), 200_000 * at)  # type: ignore[arg-type]
    pair.engine.run_until(500 * MS)
    assert (memory[:REGION_BYTES] == CANARY).all()
    assert (memory[2 * REGION_BYTES :] == CANARY).all()
    # Every request has ended, with success or an error.
    assert pair.a.queue_pair.stats()["outstanding_requests"] == 0
    assert pair.b.queue_pair.stats()["outstanding_requests"] == 0
    stats = pair.b.nic.stats(0)
    assert stats["received_packets"] + sum(stats["dropped"].values()) >= len(forgeries)
