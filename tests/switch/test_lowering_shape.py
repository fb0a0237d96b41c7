"""What the runtime knows of a program besides its code."""

from __future__ import annotations

from pathlib import Path

from weft.compiler import compile_file
from weft.engine import _core
from weft.switch.bmv2json import load_program
from weft.switch.lowering.program import lower_program

FABRIC = Path(__file__).resolve().parents[2] / "p4" / "fabric.p4"
REGISTERS = ("port_depths", "port_depth_times", "FabricEgress.telemetry.port_tx_bytes")


def test_cells_of_ports_are_those_of_arrays_with_as_many() -> None:
    shape = lower_program(load_program(compile_file(FABRIC).json_text())).shape
    cell_bytes = _core.switch_abi()["sizeof(CounterCell)"]
    counters = {first // stride: stride for first, stride in shape.runtime["port_counters"]}
    by_name = {name.rsplit(".")[-1]: offset for name, offset in shape.counter_offsets.items()}
    assert counters == {by_name[name]: cell_bytes for name in ("port_received", "port_sent", "ecn_marked")}
    depths, times, sent = (shape.registers[name] for name in REGISTERS)
    assert times.group_bytes == depths.group_bytes  # used at one index, so side by side and fetched together
    assert shape.runtime["port_registers"] == [
        (depths.group_bytes, depths.stride_bytes),
        (sent.group_bytes, sent.stride_bytes),
    ]
