"""Modes of ECMP groups: which member each packet takes, with our compiler's JSON and with p4c's."""

from __future__ import annotations

from pathlib import Path

import pytest
from balancing_leaf import (
    DATA_CLASS,
    FABRIC,
    FORWARDING,
    IDENTITY,
    INGRESS,
    MODES,
    TABLES,
    UPLINKS,
    frame,
    leaf,
    next_hop,
    ports,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from p4c import P4c
from reference_switch import AVAILABLE, ReferenceSwitch

from weft.compiler import compile_file
from weft.switch.native import NativeSwitch

COMPILERS = ["embedded", pytest.param("p4c", marks=pytest.mark.reference)]
DEPTHS, TIMES = "queue_depths", "queue_depth_times"


@pytest.fixture(scope="module", params=COMPILERS)
def document(request: pytest.FixtureRequest, p4c: P4c) -> bytes:
    return (
        p4c.compiled(FABRIC).json.read_bytes() if request.param == "p4c" else compile_file(FABRIC).json_text().encode()
    )


def set_depths(switch: NativeSwitch, depths: dict[int, int], written: int | None = None) -> None:
    """Leave depths at the ports' queues, as egress does; now unless it is said when."""
    now_ns = switch.engine.now_ps // 1000
    for port, depth in depths.items():
        queue = port << 3 | DATA_CLASS
        switch.register_write(DEPTHS, queue, depth)
        switch.register_write(TIMES, queue, now_ns if written is None else written)


def test_flows_keep_the_member_of_their_hash(document: bytes) -> None:
    switch = leaf(document, "flow")
    chosen = [set(ports(switch, [frame(flow)] * 3)) for flow in range(40)]
    assert all(len(each) == 1 for each in chosen)
    assert set().union(*chosen) == set(UPLINKS)


def test_a_queue_pair_keeps_its_member_and_a_flow_of_many_has_all(document: bytes) -> None:
    switch = leaf(document, "flow_and_queue_pair")
    chosen = [set(ports(switch, [frame(0, number)] * 3)) for number in range(0x100, 0x128)]
    assert all(len(each) == 1 for each in chosen)
    assert set().union(*chosen) == set(UPLINKS)


def test_a_flowlet_chooses_again_after_the_gap_only(document: bytes) -> None:
    assert len(set(ports(leaf(document, "flowlet"), [frame()] * 40, gap_ns=999))) == 1
    assert set(ports(leaf(document, "flowlet"), [frame()] * 40, gap_ns=1000)) == set(UPLINKS)
    # A flow begins as by its hash.
    begins = [ports(leaf(document, mode), [frame(3)])[0] for mode in ("flowlet", "adaptive by flowlets")]
    assert len(set(begins)) == 1


def test_packets_of_a_flow_take_turns(document: bytes) -> None:
    switch = leaf(document, "round_robin")
    chosen = ports(switch, [frame(flow) for _ in range(6) for flow in range(2)])
    for flow in range(2):
        of_flow = chosen[flow::2]
        assert set(of_flow[:3]) == set(UPLINKS)
        assert of_flow[:3] == of_flow[3:]


def test_random_packets_take_all_members_alike_and_the_seed_s(document: bytes) -> None:
    chosen = ports(leaf(document, "random"), [frame()] * 600)
    assert all(150 <= chosen.count(port) <= 250 for port in UPLINKS)
    assert chosen == ports(leaf(document, "random"), [frame()] * 600)
    assert chosen != ports(leaf(document, "random", seed=2), [frame()] * 600)


def test_weights_are_shares(document: bytes) -> None:
    chosen = ports(leaf(document, "round_robin", {5: 2, 6: 1, 7: 1}), [frame()] * 8)
    assert [chosen.count(port) for port in UPLINKS] == [4, 2, 2]


def test_adaptive_packets_take_turns_among_queues_alike(document: bytes) -> None:
    switch = leaf(document, "adaptive")
    set_depths(switch, {5: 9, 6: 0, 7: 0})  # within the hysteresis
    chosen = ports(switch, [frame()] * 6)
    assert [chosen.count(port) for port in UPLINKS] == [2, 2, 2]


def test_adaptive_packets_leave_out_a_long_queue(document: bytes) -> None:
    switch = leaf(document, "adaptive")
    set_depths(switch, {5: 1000, 6: 0, 7: 0})
    chosen = ports(switch, [frame()] * 300)
    # It is taken where all three candidates are it: at its turn, and at random twice.
    assert chosen.count(5) <= 300 * 1 / 3 * 1 / 9 * 2
    assert min(chosen.count(6), chosen.count(7)) > 100


def test_adaptive_flowlets_stay_within_the_hysteresis_and_move_beyond(document: bytes) -> None:
    switch = leaf(document, "adaptive by flowlets")
    (own,) = ports(switch, [frame()])
    others = [port for port in UPLINKS if port != own]
    set_depths(switch, {own: 109, **dict.fromkeys(others, 100)})
    assert set(ports(switch, [frame()] * 30, gap_ns=1000)) == {own}
    set_depths(switch, {own: 110})
    (moved,) = set(ports(switch, [frame()] * 30, gap_ns=1000)[10:])
    assert moved in others
    # Within the gap nothing moves it.
    set_depths(switch, {moved: 5000})
    assert set(ports(switch, [frame()] * 30, gap_ns=999)) == {moved}


def test_a_depth_does_not_outlive_its_lifetime(document: bytes) -> None:
    switch = leaf(document, "adaptive")
    switch.engine.run_for(2 * 10**12)
    set_depths(switch, {5: 1000}, written=1)
    chosen = ports(switch, [frame()] * 6)
    assert chosen.count(5) == 2


def test_egress_leaves_depths_to_ingress_only_where_it_should(document: bytes) -> None:
    for reports in (0, 1):
        switch = leaf(document, "adaptive", reports=reports)
        (port,) = ports(switch, [frame()])
        written = switch.register_read(TIMES, port << 3 | DATA_CLASS)
        assert written == reports * switch.engine.now_ps // 1000


def test_ages_are_counted_by_powers_of_two(document: bytes) -> None:
    switch = leaf(document, "adaptive")
    now_ns = switch.engine.now_ps // 1000
    set_depths(switch, {5: 7, 6: 7, 7: 7}, written=now_ns - 700)
    ports(switch, [frame()] * 5)
    set_depths(switch, {5: 0, 6: 0, 7: 0})
    ports(switch, [frame()] * 4)
    table = f"{FORWARDING}ages.queue_depth_ages"
    counted = {
        tuple(match.value for match in entry.key): count.packets
        for entry in switch.table_entries(table)
        if (count := switch.direct_counter_read(table, entry.key, 0)).packets
    }
    assert counted == {(1, 512): 5, (0, 0): 4}


@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    mode=st.sampled_from(sorted(MODES)),
    down=st.sets(st.sampled_from(UPLINKS), max_size=2),
    weights=st.fixed_dictionaries({port: st.integers(1, 3) for port in UPLINKS}),
    depths=st.fixed_dictionaries({port: st.integers(0, 1000) for port in UPLINKS}),
    flows=st.lists(st.integers(0, 5), min_size=1, max_size=12),
    gap_ns=st.sampled_from([0, 1000]),
)
def test_only_members_whose_links_are_up_are_chosen(
    document: bytes,
    mode: str,
    down: set[int],
    weights: dict[int, int],
    depths: dict[int, int],
    flows: list[int],
    gap_ns: int,
) -> None:
    switch = leaf(document, mode, weights, reports=1)
    frames = [frame(flow) for flow in flows]
    assert set(ports(switch, frames, gap_ns)) <= set(UPLINKS)
    set_depths(switch, depths)
    for port in down:
        switch.set_port_up(port, False)
    assert set(ports(switch, frames, gap_ns)) <= set(UPLINKS) - down


def group_commands(table: str) -> list[str]:
    """Return what gives a table the uplinks as group 1."""
    selector = f"{FORWARDING}{table}_selector"
    hops = [" ".join(map(str, next_hop(port))) for port in UPLINKS]
    return [
        *(f"act_prof_create_member {selector} {FORWARDING}set_next_hop {hop}" for hop in hops),
        f"act_prof_create_group {selector}",
        *(f"act_prof_add_member_to_group {selector} {member} 0" for member in range(len(UPLINKS))),
        f"table_indirect_add_with_group {FORWARDING}{table} 1 => 0",
    ]


@pytest.mark.reference
@pytest.mark.skipif(not AVAILABLE, reason="simple_switch is not on PATH")
@pytest.mark.parametrize("mode", sorted(MODES))
def test_simple_switch_knows_the_modes(document: bytes, tmp_path: Path, mode: str) -> None:
    (tmp_path / "program.json").write_bytes(document)
    frames = [frame(flow, 0x100 + flow) for _ in range(3) for flow in range(20)]
    action, arguments = MODES[mode]
    identity = " ".join(map(str, (*IDENTITY[:4], 0, 1, 1, 0, 0)))
    with ReferenceSwitch(tmp_path / "program.json", tmp_path) as reference:
        reference.command(
            f"table_set_default {INGRESS}identity.identity {INGRESS}identity.set_identity {identity}",
            f"table_add {FORWARDING}ipv4_lpm {FORWARDING}set_ecmp_group 0x0a000000/8 => 1",
            f"table_add {INGRESS}classes.class_map {INGRESS}classes.set_class 26 => {DATA_CLASS}",
            *(line for table in TABLES for line in group_commands(table)),
            f"table_set_default {FORWARDING}balancing.load_balancing {FORWARDING}balancing.{action} "
            + " ".join(map(str, arguments)),
        )
        reference.send([(1, each) for each in frames])
        left = reference.stop()
    chosen = {port: len(copies) for port, copies in left.items() if copies}
    assert sum(chosen.values()) == len(frames)
    assert set(chosen) <= set(UPLINKS)
    if mode in ("flow", "flow_and_queue_pair", "round_robin"):
        native = ports(leaf(document, mode), frames)
        assert chosen == {port: native.count(port) for port in set(native)}
