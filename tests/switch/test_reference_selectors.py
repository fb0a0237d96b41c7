"""Action selectors: of every packet, simple_switch, the native switch and the oracle choose the same member."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from native_twin import Twin
from reference_switch import AVAILABLE, ReferenceSwitch

from weft.compiler import compile_file
from weft.switch.backend import ActionCall, ExactMatch, GroupMember, GroupRef, TableEntry

PROGRAM = Path(__file__).parent / "programs" / "selector.p4"
PACKET_COUNT = 200
PORTS = (1, 2, 3, 4, 5)
"""Member `number` sends to port `number + 1`."""
GROUPS = {0: (0, 1, 2, 3, 4), 1: (4, 1, 2)}
TABLES = {"short_hash": ("by_crc16", 0), "long_hash": ("by_crc32", 128)}
"""The selector of each table, and the first value of `how` that leads there; group `n` is that of the n-th value."""


def _packets() -> list[tuple[int, bytes]]:
    choose = random.Random(1)
    return [
        (0, bytes([choose.choice((0, 128)) + choose.choice(tuple(GROUPS))]) + choose.randbytes(7))
        for _ in range(PACKET_COUNT)
    ]


def _twin(document: bytes) -> Twin:
    twin = Twin(document)
    for table, (selector, first) in TABLES.items():
        profile = f"SelectorIngress.{selector}"
        for member, port in enumerate(PORTS):
            call = ActionCall("SelectorIngress.send", (port,))
            twin.both(lambda switch, p=profile, m=member, c=call: switch.member_insert(p, m, c))
        for group, members in GROUPS.items():
            chosen = [GroupMember(member) for member in members]
            twin.both(lambda switch, p=profile, g=group, m=chosen: switch.group_insert(p, g, m))
            entry = TableEntry((ExactMatch(first + group),), GroupRef(group))
            twin.both(lambda switch, t=f"SelectorIngress.{table}", e=entry: switch.table_insert(t, e))
    return twin


def _commands() -> list[str]:
    commands = []
    for table, (selector, first) in TABLES.items():
        profile = f"SelectorIngress.{selector}"
        commands += [f"act_prof_create_member {profile} SelectorIngress.send {port}" for port in PORTS]
        for group, members in GROUPS.items():
            commands.append(f"act_prof_create_group {profile}")
            commands += [f"act_prof_add_member_to_group {profile} {member} {group}" for member in members]
            commands.append(f"table_indirect_add_with_group SelectorIngress.{table} {first + group} => {group}")
    return commands


def test_native_and_oracle_choose_the_same_and_every_member() -> None:
    twin = _twin(compile_file(PROGRAM).json_text().encode())
    ports = {output[0] for port, data in _packets() for output in twin.process(port, data)}
    assert ports == set(PORTS)


@pytest.mark.reference
@pytest.mark.skipif(not AVAILABLE, reason="simple_switch is not on PATH")
def test_simple_switch_chooses_the_same(tmp_path: Path) -> None:
    document = compile_file(PROGRAM).json_text()
    (tmp_path / "program.json").write_text(document)
    with ReferenceSwitch(tmp_path / "program.json", tmp_path) as reference:
        reference.command(*_commands())
        reference.send(_packets())
        left = reference.stop()
    twin = _twin(document.encode())
    found = [output for port, data in _packets() for output in twin.process(port, data)]
    assert sorted(found) == sorted((port, data) for port, copies in left.items() for data in copies)
    assert len(found) == PACKET_COUNT
