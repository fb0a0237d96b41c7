"""ECN thresholds, INT factors, identity and neighbours in the units and fields of the program."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from weft.controller.entities import exact_arguments, mac_number
from weft.controller.errors import SettingError
from weft.controller.features.ecn import (
    DCQCN_SCALE,
    EcnDepth,
    EcnProfile,
    ecn_entities,
    profile_of,
    read_thresholds,
    threshold_entity,
    thresholds,
)
from weft.controller.features.identity import class_entities, hash_seed, identity_entities, switch_id
from weft.controller.features.neighbours import neighbour_entities
from weft.controller.features.telemetry_int import int_entities
from weft.controller.target import BMV2, EMBEDDED, cell_bytes_for, target_facts
from weft.topologies import TopologyError, leaf_spine
from weft.topologies.int_rates import STANDARD_INT_RATES, int_rates, int_rates_of, rate_code

FABRIC = leaf_spine()
profiles = st.builds(
    lambda kmin, width, pmax: EcnProfile(kmin, kmin + width, pmax),
    st.integers(0, 10**7),
    st.integers(0, 10**7),
    st.floats(0, 1),
)


def probability(kmin: int, kmax: int, slope: int, depth: int) -> float:
    """The program's arithmetic (p4/include/ecn.p4): 16-bit chance against a fixed-point product."""
    if depth > kmax:
        return 1.0
    return min(1.0, ((max(0, depth - kmin) * slope) >> 16) / 65536) if depth > kmin else 0.0


@given(profiles, st.sampled_from([EMBEDDED, BMV2]), st.floats(0, 1))
def test_the_program_marks_with_the_profile_s_probability(profile: EcnProfile, target: object, where: float) -> None:
    facts = EMBEDDED if target is EMBEDDED else BMV2
    values = thresholds(profile, facts)
    depth = values.kmin + int((values.kmax - values.kmin) * where)
    if values.kmax > values.kmin:
        wanted = profile.pmax * (depth - values.kmin) / (values.kmax - values.kmin)
        # The slope is rounded to 2^-32 per unit, at most 2^18 units; the chance has 16 bits.
        assert abs(probability(values.kmin, values.kmax, values.slope, depth) - wanted) < 2**-13
    assert probability(values.kmin, values.kmax, values.slope, values.kmax + 1) == 1.0
    assert probability(values.kmin, values.kmax, values.slope, values.kmin) == 0.0


@given(profiles)
def test_profiles_survive_the_way_to_the_switch_and_back(profile: EcnProfile) -> None:
    back = profile_of(thresholds(profile, EMBEDDED), EMBEDDED)
    assert abs(back.kmin_bytes - profile.kmin_bytes) <= 40
    assert abs(back.kmax_bytes - profile.kmax_bytes) <= 40
    if back.kmax_bytes > back.kmin_bytes:
        assert abs(back.pmax - profile.pmax) < 1e-3


def test_hpcc_s_setup_at_its_own_rates() -> None:
    assert DCQCN_SCALE.profile(25 * 10**9) == EcnProfile(100_000, 400_000, 0.2)
    assert DCQCN_SCALE.profile(100 * 10**9) == EcnProfile(400_000, 1_600_000, 0.2)
    values = thresholds(DCQCN_SCALE.profile(25 * 10**9), EMBEDDED)
    assert (values.kmin, values.kmax, values.slope) == (1250, 5000, round(0.2 * 2**32 / 3750))


@pytest.mark.parametrize(
    ("rate_bps", "cell_bytes"),
    [
        (10**6, 80),
        (100 * 10**9, 80),
        (2600 * 10**9, 80),
        (2700 * 10**9, 160),
        (25 * 10**12, 1280),
        (10**14, 5120),
    ],
)
def test_cells_grow_until_the_depth_holds_the_default_thresholds(rate_bps: int, cell_bytes: int) -> None:
    profile = DCQCN_SCALE.profile(rate_bps)
    assert cell_bytes_for(profile.kmax_bytes) == cell_bytes
    facts = target_facts("embedded", cell_bytes=cell_bytes)
    back = profile_of(thresholds(profile, facts), facts)
    assert abs(back.kmin_bytes - profile.kmin_bytes) <= cell_bytes / 2
    assert abs(back.kmax_bytes - profile.kmax_bytes) <= cell_bytes / 2
    assert target_facts("embedded", **facts.units()) == facts
    assert facts.cells_per_depth_unit == cell_bytes // 80


def test_a_certain_mark_right_above_kmin_fits_the_slope() -> None:
    assert thresholds(EcnProfile(800, 880, 1.0), EMBEDDED).slope == 2**32 - 1


def test_thresholds_that_the_queue_depth_cannot_say_are_refused() -> None:
    with refused(SettingError, valid="at most 524287 cells, 41942960 bytes", problem="kmax_bytes=50000000 is 625000"):
        thresholds(EcnProfile(0, 50_000_000, 1), EMBEDDED)
    with refused(SettingError, problem="kmax_bytes=1 is below"):
        EcnProfile(2, 1, 0.5)
    with refused(SettingError, valid="0 to 1", problem="5 is out of range"):
        EcnProfile(1, 2, 1.5)
    with refused(SettingError, valid="0 to 7", problem="class 8 is out of range"):
        threshold_entity(1, 8, EcnProfile(1, 2, 0.5), EMBEDDED)
    with refused(SettingError, valid="dequeue, enqueue", problem="the depth at 'ingress'"):
        threshold_entity(1, 3, EcnProfile(1, 2, 0.5), EMBEDDED, "ingress")  # type: ignore[arg-type]


@pytest.mark.parametrize("at", ["dequeue", "enqueue"])
def test_the_depth_that_marks_survives_the_way_to_the_switch_and_back(at: EcnDepth) -> None:
    found = read_thresholds(threshold_entity(7, 3, EcnProfile(800, 1600, 0.5), EMBEDDED, at))
    assert found == (7, 3, at, thresholds(EcnProfile(800, 1600, 0.5), EMBEDDED))


def test_every_port_gets_thresholds_for_its_rate() -> None:
    fabric = leaf_spine(host_rate_bps=25e9, fabric_rate_bps=100e9)
    entries = ecn_entities(fabric.switch("p0l0"), EMBEDDED)
    kmin = {entry["port"]: exact_arguments(entry.action)["kmin"] for entry in entries}
    assert kmin == {1: 1250, 2: 1250, 3: 5000, 4: 5000}


@pytest.mark.parametrize(("code", "gbps"), [(1, 1), (2, 10), (6, 100), (8, 400), (10, 1600)])
def test_rate_codes(code: int, gbps: int) -> None:
    assert rate_code(STANDARD_INT_RATES, gbps * 10**9) == code
    assert STANDARD_INT_RATES[code] == gbps * 10**9


def test_a_fabric_s_own_rates_get_codes_of_its_own() -> None:
    """Above the standard ones first, then those of standard rates that the fabric does not have."""
    fabric = leaf_spine(host_rate_bps=100e9, oversubscription=3)
    (uplink_bps,) = {link.link.rate_bps for link in fabric.links} - {100 * 10**9}
    rates = int_rates(fabric)
    assert uplink_bps not in STANDARD_INT_RATES
    assert (rates[:11], rates[11], rates[12:]) == (STANDARD_INT_RATES[:11], uplink_bps, (0,) * 4)
    codes = {
        exact_arguments(each.action)["port_rate_code"] for each in int_entities(fabric.switch("p0l0"), EMBEDDED, rates)
    }
    assert codes == {6, 11}
    own = [7 * 10**9 + number for number in range(12)]
    many = int_rates_of([*own, 10**9, 800 * 10**9, 1600 * 10**9])
    assert {rate_code(many, rate) for rate in own} == {11, 12, 13, 14, 15, 8, 7, 6, 5, 4, 3, 2}
    assert [rate_code(many, gbps * 10**9) for gbps in (1, 800, 1600)] == [1, 9, 10]
    assert rate_code(many, 100 * 10**9) == 0


def test_more_rates_than_codes_are_refused_by_name() -> None:
    int_rates_of(range(10**9, 16 * 10**9, 10**9))
    with refused(
        TopologyError,
        valid="at most 15 with INT, which has 4 bits for a rate",
        problem="links of 16 different rates: 1",
    ):
        int_rates_of(range(10**9, 17 * 10**9, 10**9))


def test_int_factors_follow_the_target() -> None:
    assert rate_code(STANDARD_INT_RATES, 12_345) == 0
    embedded = exact_arguments(int_entities(FABRIC.switch("p0l0"), EMBEDDED)[0].action)
    assert embedded == {"port_rate_code": 2, "ns_per_time_unit": 1, "cells_per_depth_unit": 1}
    bmv2 = exact_arguments(int_entities(FABRIC.switch("p0l0"), BMV2)[0].action)
    assert bmv2 == {"port_rate_code": 2, "ns_per_time_unit": 1000, "cells_per_depth_unit": 13}


def test_target_facts() -> None:
    assert target_facts("embedded", depth_unit="packets", nominal_packet_bytes=500).depth_units(1249) == 2
    with refused(SettingError, valid="'embedded', 'bmv2'", problem="unknown target 'tofino'"):
        target_facts("tofino")
    with refused(SettingError, valid="80 times a power of two", problem="cell_bytes=100"):
        target_facts("embedded", cell_bytes=100)
    with refused(SettingError, valid="'ns', 'us'", problem="unknown time unit 'ms'"):
        target_facts("bmv2", time_unit="ms")  # type: ignore[arg-type]


def test_identities_differ_and_seeds_too() -> None:
    switches = FABRIC.switches
    assert len({switch_id(switch) for switch in switches}) == len(switches)
    assert len({hash_seed(switch, seed) for switch in switches for seed in (1, 2)}) == 2 * len(switches)
    arguments = exact_arguments(identity_entities(FABRIC.switch("p1l2"))[0].action)
    assert (str(arguments["ipv4"]), arguments["mac"]) == ("10.1.2.254", "02:01:01:02:00:00")


def test_both_ip_versions_map_data_and_control_to_their_classes() -> None:
    found = {(entry.table_id, entry["dscp"], exact_arguments(entry.action)["class"]) for entry in class_entities()}
    assert found == {
        (table, dscp, cls) for table in ("class_map", "class_map_ipv6") for dscp, cls in ((26, 3), (48, 6))
    }


def test_a_leaf_answers_for_itself_and_its_hosts_with_its_own_mac() -> None:
    leaf = FABRIC.switch("p0l1")
    entries = neighbour_entities(FABRIC, leaf)
    asked = {str(value) for entry in entries for value in (entry.match or {}).values()}
    assert asked == {"10.0.1.254", "10.0.1.1", "10.0.1.2", "fd00:0:1::fe", "fd00:0:1::1", "fd00:0:1::2"}
    assert {exact_arguments(entry.action)["mac"] for entry in entries} == {mac_number(leaf.mac)}
    spine = {
        str(value) for e in neighbour_entities(FABRIC, FABRIC.switch("p0s0")) for value in (e.match or {}).values()
    }
    assert spine == {"10.0.255.1", "fd00:0:ff::1"}
