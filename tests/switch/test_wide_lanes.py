"""fabric.p4 with packets of 128, 256 and 1,024 lanes: compiled, and the same on the native switch and the oracle."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from native_twin import Twin
from scapy.layers.l2 import Ether
from scapy.packet import raw
from test_native_fabric import EPOCH, IPV4, JOB, MAC, QKEY, configure

from weft.compiler import CompileError, compile_file
from weft.traffic.aggregation_format import Operation
from weft.traffic.layers import AggregationHeader, aggregation_frame, icrc_is_valid

FABRIC = Path(__file__).resolve().parents[2] / "p4" / "fabric.p4"
WIDTHS = [128, pytest.param(256, marks=pytest.mark.slow), pytest.param(1024, marks=pytest.mark.slow)]


def contribution(rank: int, lanes: np.ndarray, operation: Operation, round_number: int) -> bytes:
    frame = aggregation_frame(
        source_mac="02:00:00:00:00:01",
        destination_mac=MAC,
        source_ip=f"10.0.0.{rank + 1}",
        destination_ip=IPV4,
        qkey=QKEY,
        job_id=JOB,
        epoch=EPOCH,
        slot=3,
        round_number=round_number,
        rank=rank,
        operation=operation,
        lanes=lanes.tolist(),
    )
    return raw(frame)


@pytest.mark.parametrize("width", WIDTHS)
def test_both_switches_reduce_packets_of_a_width(width: int) -> None:
    twin = Twin(json.dumps(compile_file(FABRIC, defines={"AGGREGATION_LANES": str(width)}).json).encode())
    twin.both(configure)
    rng = np.random.default_rng(width)
    for round_number, (operation, ufunc) in enumerate(
        [(Operation.SUM, np.add), (Operation.MAX, np.maximum), (Operation.MIN, np.minimum)]
    ):
        lanes = rng.integers(-(2**31), 2**31, (2, width), dtype=np.int64).astype(np.int32)
        assert twin.process(1, contribution(0, lanes[0], operation, round_number)) == []
        results = twin.process(2, contribution(1, lanes[1], operation, round_number))
        assert [port for port, _ in results] == [1, 2]
        for _, data in results:
            assert icrc_is_valid(data)
            with np.errstate(over="ignore"):
                assert Ether(data)[AggregationHeader].lanes == ufunc(lanes[0], lanes[1]).tolist()
    # Of another width than the program's.
    assert twin.process(1, contribution(0, np.zeros(64, np.int32), Operation.SUM, 9)) == []
    assert twin.program.register_arrays["FabricIngress.aggregation.slot_tag"].size == 2 * 4096 * 64 // width


def test_a_width_that_is_none_is_refused() -> None:
    with pytest.raises(CompileError, match="AGGREGATION_LANES: 64, 128, 256 or 1024"):
        compile_file(FABRIC, defines={"AGGREGATION_LANES": "96"})
