"""Messages in the lines of NCCL's LL and LL128: their bytes on the link, their data, and lines that are refused."""

from typing import Any

import numpy as np
import pytest

from tests.transport.rdma_pair import Bytes, RdmaPair, cabled_pair, random_bytes, wired_pair

UNITS = {"ll": (8, 16), "ll128": (1920, 2048)}
"""Data of the least message, and its bytes on a link (NCCL: a ncclLLFifoLine; 16 lines of 128 B, 8 of them flag)."""
SIZES = [0, 1, 3, 4, 5, 8, 9, 119, 120, 121, 1919, 1920, 1921, 4096, 60_001]
TIMES: dict[str, Any] = {"window_bytes": 1 << 30, "retransmission_timeout_ps": 10**9}
FAULTS = {"loss": 0.05, "duplicate": 0.05}


def on_the_wire(line_format: str, size: int) -> int:
    data, wire = UNITS[line_format]
    return -(-size // data) * wire


def written(pair: RdmaPair, source: Bytes, offset: int = 0) -> Bytes:
    """Write into the middle of other bytes, which stay."""
    target = np.full(len(source) + 64, 0xEE, np.uint8)
    rkey = pair.b.register(target).rkey
    memory = pair.a.register(source) if len(source) else None
    pair.a.queue_pair.post_write(memory, 0, len(source), 32 + offset, rkey, immediate=7)
    pair.engine.run()
    [completion] = pair.a.completions.poll()
    assert (completion["status"], completion["length_bytes"]) == ("success", len(source))
    assert np.all(target[:32] == 0xEE)
    assert np.all(target[32 + len(source) :] == 0xEE)
    return target[32 : 32 + len(source)]


@pytest.mark.parametrize("retransmission", ["go-back-n", "selective-repeat"])
@pytest.mark.parametrize("line_format", UNITS)
@pytest.mark.parametrize("size", SIZES)
def test_data_arrive_and_flags_cross_the_link(line_format: str, size: int, retransmission: str) -> None:
    pair = cabled_pair(line_format=line_format, retransmission=retransmission, **TIMES)
    source = random_bytes(size)
    assert np.array_equal(written(pair, source), source)
    assert pair.a.queue_pair.stats()["data_bytes_sent"] == on_the_wire(line_format, size)
    assert pair.b.queue_pair.stats()["data_bytes_received"] == on_the_wire(line_format, size)


@pytest.mark.parametrize("retransmission", ["go-back-n", "selective-repeat"])
@pytest.mark.parametrize("mtu", [256, 4096])
@pytest.mark.parametrize("line_format", UNITS)
def test_lost_lines_are_sent_again(line_format: str, mtu: int, retransmission: str) -> None:
    pair = cabled_pair(
        line_format=line_format, retransmission=retransmission, path_mtu_bytes=mtu, faults=FAULTS, **TIMES
    )
    source = random_bytes(100_003)
    assert np.array_equal(written(pair, source), source)
    assert pair.a.queue_pair.stats()["retransmitted_packets"] > 0


@pytest.mark.parametrize("retransmission", ["go-back-n", "selective-repeat"])
@pytest.mark.parametrize("line_format", UNITS)
def test_lengths_take_as_many_bytes(line_format: str, retransmission: str) -> None:
    """In segments, too, whose packets have places of their own with selective repeat."""
    size = 300_000
    for segments in (1, 8):
        pair = cabled_pair(line_format=line_format, retransmission=retransmission, segment_packets=segments, **TIMES)
        rkey = pair.b.nic.register_sink(size).rkey
        pair.a.queue_pair.post_write_as_length(size, 0, rkey)
        pair.engine.run()
        [completion] = pair.a.completions.poll()
        assert completion["status"] == "success"
        stats = pair.a.queue_pair.stats()
        assert stats["data_bytes_sent"] == on_the_wire(line_format, size)
        assert (stats["segments_sent"] > 0) == (segments > 1)


@pytest.mark.parametrize("retransmission", ["go-back-n", "selective-repeat"])
@pytest.mark.parametrize("line_format", UNITS)
def test_data_beyond_a_region_are_refused(line_format: str, retransmission: str) -> None:
    pair = cabled_pair(line_format=line_format, retransmission=retransmission, **TIMES)
    target = np.zeros(1000, np.uint8)
    rkey = pair.b.register(target).rkey
    pair.a.queue_pair.post_write(pair.a.register(random_bytes(1001)), 0, 1001, 0, rkey)
    pair.engine.run()
    [completion] = pair.a.completions.poll()
    assert completion["status"] == "remote_access_error"


def test_lines_with_too_large_a_flag_are_refused() -> None:
    """A sender without lines sends bytes that the receiver takes for flags."""
    pair = cabled_pair(line_format="ll", sender={"line_format": "none"}, **TIMES)
    target = np.zeros(1024, np.uint8)
    rkey = pair.b.register(target).rkey
    pair.a.queue_pair.post_write(pair.a.register(np.full(1024, 5, np.uint8)), 0, 1024, 0, rkey)
    pair.engine.run()
    [completion] = pair.a.completions.poll()
    assert completion["status"] == "remote_invalid_request"
    assert not target.any()


def test_only_writes_have_lines() -> None:
    pair = wired_pair(line_format="ll", window_bytes=1 << 30)
    with pytest.raises(ValueError, match="carries nothing but WRITEs"):
        pair.a.queue_pair.post_send(pair.a.register(random_bytes(8)), 0, 8)
    with pytest.raises(ValueError, match="line_format is 'll64'"):
        wired_pair(line_format="ll64", window_bytes=1 << 30)
