"""Two documents of one program, by two compilers, do the same with the same entries and packets."""

from __future__ import annotations

import random

from random_state import PORTS, PacketGenerator, StateGenerator

from weft.switch.backend import Digest, PacketIn, SwitchBackend
from weft.switch.bmv2json import load_program
from weft.switch.oracle.switch import OracleSwitch


def behaviour_differences(ours: str, theirs: str, seed: int, packets: int) -> list[str]:
    """What the oracle does differently with the two documents: packets, packet-ins, digests, counters, registers."""
    programs = [load_program(ours), load_program(theirs)]
    rng = random.Random(seed)
    switches = [OracleSwitch(), OracleSwitch()]
    for switch, program in zip(switches, programs, strict=True):
        switch.load(program)
    StateGenerator(programs[0], rng).write(*switches)
    generator, found = PacketGenerator(programs[0], rng), []
    for turn in range(packets):
        port, data = rng.randrange(PORTS), generator.packet()
        outcomes = [outcome(switch, port, data) for switch in switches]
        if outcomes[0] != outcomes[1]:
            found.append(f"packet {turn} {data.hex()} into port {port}: {outcomes[0]} instead of {outcomes[1]}")
    for name in programs[0].register_arrays:
        if name in programs[1].register_arrays:
            cells = [list(switch.register_read_all(name)) for switch in switches]
            if cells[0] != cells[1]:
                found.append(f"register {name}")
    for name, array in programs[0].counter_arrays.items():
        if array.table is None:
            counts = [list(switch.counter_read_all(name)) for switch in switches]
            if counts[0] != counts[1]:
                found.append(f"counter {name}")
    return found


def outcome(switch: OracleSwitch, port: int, data: bytes) -> tuple[list[tuple[int, str]], list[str]]:
    """What leaves, in the order of ports, and what the controller receives."""
    sent = sorted((output.port, output.data.hex()) for output in switch.process(port, data))
    return sent, sorted(_events(switch))


def _events(switch: SwitchBackend) -> list[str]:
    events = []
    while (event := switch.wait_stream_event(0)) is not None:
        if isinstance(event, PacketIn):
            events.append(f"packet-in {event.data.hex()}")
        elif isinstance(event, Digest):
            events.append(f"digest {event.values}")
    return events
