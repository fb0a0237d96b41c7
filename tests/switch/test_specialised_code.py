"""Code for the contents of tables: the same outcome for every packet, and general code after a write that breaks it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from native_twin import Twin
from router_program import router_document
from test_native_router import configure, ipv4_packet

from fuzz import twin as fuzz_twin
from fuzz.p4_grammar import CLONE_SESSIONS, MULTICAST_GROUPS, PORTS, random_program
from fuzz.switch_programs import random_packets
from fuzz.switch_setup import random_setup
from weft.compiler import compile_file
from weft.switch.backend import ActionCall, BackendError, ExactMatch, LpmMatch, SwitchBackend, TableEntry
from weft.switch.bmv2json import load_program
from weft.switch.lowering import compile_program
from weft.switch.native.specialised import assumptions_of, specialise

Write = Callable[[SwitchBackend], None]


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code of these tests would drive all other programs out of the cache."""
    monkeypatch.setenv("WEFT_CACHE_DIR", "")


@pytest.fixture
def routers() -> Twin:
    twin = Twin(router_document())
    twin.both(configure)
    return twin


def _packets() -> list[tuple[int, bytes]]:
    return [
        (port, ipv4_packet(0x0B000000 + port, 0x0A010200 + last, ttl=ttl))
        for port in range(1, 7)
        for last, ttl in ((1, 64), (3, 64), (4, 3), (5, 64))
    ]


def _changed(table: str, key: tuple[object, ...], action: ActionCall) -> Write:
    return lambda switch: switch.table_modify(table, TableEntry(key, action))  # type: ignore[arg-type]


def _route(port: int) -> ActionCall:
    return ActionCall("route", (port, 0x020000000000 + port))


def test_packets_fare_alike_in_specialised_code(routers: Twin) -> None:
    assert specialise([routers.native]) == 1
    for port, data in _packets():
        routers.process(port, data)
    assert routers.native.code.is_specialised


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(
            lambda switch: switch.table_insert("routes", TableEntry((LpmMatch(0x0A020000, 16),), _route(5))),
            id="an entry like those there",
        ),
        pytest.param(lambda switch: switch.table_delete("routes", (LpmMatch(0, 0),), 0), id="an entry less"),
        pytest.param(lambda switch: switch.member_modify("selector", 1, ActionCall("set_port", (9,))), id="a member"),
    ],
)
def test_writes_that_break_nothing_keep_the_code(routers: Twin, write: Write) -> None:
    specialise([routers.native])
    routers.both(write)
    assert routers.native.code.is_specialised
    for port, data in _packets():
        routers.process(port, data)


def _without_police(switch: SwitchBackend) -> None:
    for entry in list(switch.table_entries("police_table")):
        switch.table_delete("police_table", entry.key, entry.priority)


BREAKING: list[tuple[Write | None, Write]] = [
    # The first entry of a table.
    (
        _without_police,
        lambda switch: switch.table_insert("police_table", TableEntry((ExactMatch(2),), ActionCall("multicast", (9,)))),
    ),
    # An action that no entry had.
    (
        lambda switch: switch.table_delete("police_table", (ExactMatch(2),), 0),
        _changed("police_table", (ExactMatch(1),), ActionCall("learn")),
    ),
    # Another argument where all had the same.
    (
        lambda switch: switch.table_delete("police_table", (ExactMatch(6),), 0),
        _changed("police_table", (ExactMatch(1),), ActionCall("police", (7,))),
    ),
    # The default action of a table without entries.
    (_without_police, lambda switch: switch.table_set_default("police_table", ActionCall("multicast", (9,)))),
]


@pytest.mark.parametrize(("before", "write"), BREAKING)
def test_a_write_that_breaks_an_assumption_comes_with_general_code(
    routers: Twin, before: Write | None, write: Write
) -> None:
    if before is not None:
        routers.both(before)
    specialise([routers.native])
    for port, data in _packets():
        routers.process(port, data)
    assert routers.native.code.is_specialised
    routers.both(write)
    assert not routers.native.code.is_specialised
    assert routers.native.code.generalisations == 1
    for port, data in _packets():
        routers.process(port, data)
    # And again, for what is there now.
    assert specialise([routers.native]) == 1
    for port, data in _packets():
        routers.process(port, data)


def test_code_is_refused_for_contents_that_break_it(routers: Twin) -> None:
    before, write = BREAKING[0]
    assert before is not None
    routers.both(before)
    code = compile_program(routers.program, assumed=assumptions_of(routers.program, [routers.native]))
    routers.both(write)
    assert routers.native.native.specialise(code.native) is False
    assert not routers.native.code.is_specialised


def test_traced_packets_run_through_instrumented_code(routers: Twin) -> None:
    specialise([routers.native])
    routers.native.trace.start(1)
    assert not routers.native.code.is_specialised
    routers.trace(*_packets()[0])
    assert specialise([routers.native]) == 0
    routers.native.trace.stop()
    assert specialise([routers.native]) == 1


def test_two_switches_share_what_they_have_in_common() -> None:
    with patch.dict(os.environ, WEFT_CACHE_DIR=""):
        twins = [Twin(router_document()) for _ in range(2)]
    for number, twin in enumerate(twins):
        twin.both(configure)
        twin.both(
            lambda switch, port=number: switch.table_insert(  # type: ignore[misc]
                "routes", TableEntry((LpmMatch(0x0A020000, 16),), _route(5 + port))
            )
        )
    assert specialise([twin.native for twin in twins]) == 2
    for twin in twins:
        for port, data in _packets():
            twin.process(port, data)
    twins[0].both(lambda switch: switch.table_set_default("police_table", ActionCall("learn")))
    assert [twin.native.code.generalisations for twin in twins] == [0, 0]


@pytest.mark.parametrize("number", range(12))
def test_random_writes_between_packets(number: int, tmp_path: Path) -> None:
    """Programs, entries and packets at random; the fuzzer's twin compares packets, drops, digests and all state."""
    rng = random.Random(number)
    source = tmp_path / "program.p4"
    source.write_text(random_program(rng))
    twin = fuzz_twin.Twin(load_program(compile_file(source).json_text()))
    steps = list(random_setup(rng, twin.program, PORTS, CLONE_SESSIONS, MULTICAST_GROUPS))
    specialised = 0
    part = max(1, len(steps) // 4)
    for first in range(0, len(steps), part):
        specialised += specialise([twin.native])
        for step in steps[first : first + part]:
            try:
                twin.both(step)
            except BackendError:
                continue  # an entry like one before
        for port, data in random_packets(rng):
            twin.process(port, data)
        twin.compare_state()
    specialised += specialise([twin.native])
    for port, data in random_packets(rng):
        twin.process(port, data)
    twin.compare_state()
    assert specialised >= 2
