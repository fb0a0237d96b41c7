"""What a switch says of packets that ended in it: why, by which port they had come, and what marked them."""

from __future__ import annotations

from dataclasses import replace

from weft.compiler.artifacts import compile_artifacts
from weft.paths import ROOT
from weft.switch.backend import ActionCall, LpmMatch, TableEntry
from weft.switch.bmv2json import load_program
from weft.switch.drop_sites import DropSite, Loss
from weft.switch.native import NativeSwitch

PROGRAM = ROOT / "examples" / "own_network" / "forward.p4"
ROUTES, DROP = "Route.routes", "Route.drop"


def ipv4(destination: int, ttl: int = 64) -> bytes:
    header = bytes([0x45, 0, 0, 20, 0, 1, 0, 0, ttl, 17, 0, 0]) + bytes(4) + destination.to_bytes(4, "big")
    return bytes(12) + b"\x08\x00" + header


def router() -> NativeSwitch:
    switch = NativeSwitch()
    switch.load(load_program(compile_artifacts(PROGRAM).json_text))
    forward = ActionCall("Route.forward", (0x020000000001, 7))
    switch.table_insert(ROUTES, TableEntry((LpmMatch(0x0A000000, 8),), forward))
    switch.table_insert(ROUTES, TableEntry((LpmMatch(0x0B000000, 8),), ActionCall(DROP)))
    return switch


def site(table: str = "", action: str = "", outcome: str = "") -> DropSite:
    return DropSite("ingress", table, action, outcome, "forward.p4:55")  # type: ignore[arg-type]


def losses(switch: NativeSwitch) -> dict[Loss, int]:
    return {replace(each, packets=0): each.packets for each in switch.losses()}


def test_drops_of_a_program_are_told_apart_by_table_outcome_and_port() -> None:
    switch = router()
    for port, packet in (
        (1, ipv4(0x0A000001)),
        (1, ipv4(0x0C000001)),
        (1, ipv4(0x0C000002)),
        (2, ipv4(0x0C000001)),
        (3, ipv4(0x0B000001)),
        (3, ipv4(0x0A000001, ttl=1)),
    ):
        switch.process(port, packet)
    found = losses(switch)
    statement = next(each.site for each in found if each.site is not None and not each.site.table)
    assert statement is not None
    assert found == {
        Loss("program_ingress", 1, 0, site(ROUTES, DROP, "miss")): 2,
        Loss("program_ingress", 2, 0, site(ROUTES, DROP, "miss")): 1,
        Loss("program_ingress", 3, 0, site(ROUTES, DROP, "hit")): 1,
        Loss("program_ingress", 3, 0, statement): 1,
    }
    assert statement.source == "forward.p4:55"
    assert sum(found.values()) == switch.drops()["program_ingress"]


def test_what_another_program_dropped_stays_counted_without_a_place() -> None:
    switch = router()
    switch.process(1, ipv4(0x0C000001))
    switch.load(load_program(compile_artifacts(PROGRAM).json_text))
    switch.process(1, ipv4(0x0C000001))
    assert losses(switch) == {
        Loss("program_ingress", 1, 0, None): 1,
        Loss("program_ingress", 1, 0, site(ROUTES, DROP, "miss")): 1,
    }
    switch.native.reset_drops()
    assert switch.losses() == []


def test_a_packet_for_a_port_that_is_not_there_ends_in_the_switch() -> None:
    switch = NativeSwitch()
    switch.load(load_program(compile_artifacts(PROGRAM).json_text))
    switch.table_insert(ROUTES, TableEntry((LpmMatch(0, 0),), ActionCall("Route.forward", (1, 9))))
    switch.native.receive(4, ipv4(0x0A000001))
    assert switch.losses() == [Loss("unknown_port", 4, 1, None)]


def test_a_packet_that_the_controller_does_not_take_is_lost_by_the_port_by_which_it_came() -> None:
    switch = NativeSwitch(cpu_port=510)
    switch.load(load_program(compile_artifacts(PROGRAM).json_text))
    switch.table_insert(ROUTES, TableEntry((LpmMatch(0, 0),), ActionCall("Route.forward", (1, 510))))
    # Nobody takes any; the queue holds a bounded number.
    for _ in range(100_000):
        switch.native.receive(4, ipv4(0x0A000001))
        if switch.losses():
            break
    assert switch.losses() == [Loss("cpu_queue_full", 4, 1, None)]
