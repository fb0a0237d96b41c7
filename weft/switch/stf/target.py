"""The switches that can run a script, behind one interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from weft.switch.backend import PacketIn, SwitchBackend
from weft.switch.bmv2json import Program

SwitchName = Literal["native", "oracle"]
SWITCH_NAMES: tuple[SwitchName, ...] = ("native", "oracle")
CPU_PORT = 510


@dataclass(frozen=True, slots=True)
class Target:
    """A loaded switch; `process` takes a packet at a port and returns the packets that leave, as (port, bytes)."""

    backend: SwitchBackend
    process: Callable[[int, bytes], list[tuple[int, bytes]]]


def make_target(name: SwitchName, program: Program, *, covered: bool = False) -> Target:
    """Return a new switch that runs `program`. Raises UnsupportedProgramError if this kind of switch cannot.

    `covered`: the native switch counts coverage (`weft.switch.native.coverage`).
    """
    return _native(program, covered=covered) if name == "native" else _oracle(program)


def _native(program: Program, *, covered: bool) -> Target:
    from weft.switch.native import NativeSwitch

    switch = NativeSwitch(name="stf", cpu_port=CPU_PORT)
    switch.load(program)
    if covered:
        from weft.switch.native.coverage import cover

        cover([switch])
    return Target(switch, lambda port, data: switch.process(port, data) + _packet_ins(switch))


def _oracle(program: Program) -> Target:
    from weft.switch.oracle import OracleSwitch

    switch = OracleSwitch(cpu_port=CPU_PORT)
    switch.load(program)

    def process(port: int, data: bytes) -> list[tuple[int, bytes]]:
        outputs = [(output.port, output.data) for output in switch.process(port, data)]
        return outputs + _packet_ins(switch)

    return Target(switch, process)


def _packet_ins(backend: SwitchBackend) -> list[tuple[int, bytes]]:
    """Return the packets at the CPU port, which scripts treat like any other port."""
    packets = []
    while (event := backend.wait_stream_event(0)) is not None:
        if isinstance(event, PacketIn):
            packets.append((CPU_PORT, event.data))
    return packets
