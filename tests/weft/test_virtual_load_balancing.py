"""Load balancing in virtual time: what a permutation gains by it, with links that fail, and the truth about depths."""

from __future__ import annotations

import pytest

from weft import Fabric
from weft.controller.features.load_balancing import load_balancing_rows
from weft.controller.lab import Lab
from weft.errors import BadInputError
from weft.results.run_result import RunResult
from weft.scenario import RoutingSection, TransportSection, parse_scenario
from weft.scenario.events import EventSection
from weft.topologies import FabricSpec, leaf_spine

SIZE_BYTES = 400_000
MODES = ("flow", "flow_and_queue_pair", "flowlet", "round_robin", "random", "adaptive")


def fabric() -> FabricSpec:
    return leaf_spine(planes=1, leaves=4, spines=4, hosts_per_leaf=4, host_rate_bps=100e9, delay_ps=1_000_000)


def permuted(mode: str, *, retransmission: str = "selective-repeat", seed: int = 1, **more: object) -> RunResult:
    transport = TransportSection(retransmission=retransmission, ack_interval=4)  # type: ignore[arg-type]
    routing = RoutingSection(load_balancing=mode, **more.pop("routing", {}))  # type: ignore[arg-type]
    with Fabric(
        fabric(),
        clock="virtual",
        seed=seed,
        mtu_bytes=4096,
        int_telemetry=False,
        transport=transport,
        routing=routing,
        **more,  # type: ignore[arg-type]
    ) as running:
        running.permutation(SIZE_BYTES, data="lengths")
        return running.summary()


def test_spraying_is_at_least_as_fast_as_flows() -> None:
    times_ps = {mode: permuted(mode).flows[0].time_ps for mode in MODES}
    for mode in ("round_robin", "random", "adaptive"):
        assert times_ps[mode] <= times_ps["flow"]
    assert times_ps["round_robin"] <= times_ps["random"]


@pytest.mark.parametrize("mode", MODES)
def test_a_seed_gives_the_same_run_again(mode: str) -> None:
    first, again = (permuted(mode, seed=3).as_dict() for _ in range(2))
    assert first == again


def test_a_run_does_not_depend_on_the_one_before() -> None:
    routing = RoutingSection(load_balancing="adaptive")
    transport = TransportSection(retransmission="selective-repeat")
    with Fabric(fabric(), clock="virtual", routing=routing, transport=transport) as running:
        first, second = (running.permutation(SIZE_BYTES, data="lengths").time_ps for _ in range(2))
    assert first == second


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("retransmission", ["selective-repeat", "go-back-n"])
def test_all_bytes_arrive_over_links_that_fail(mode: str, retransmission: str) -> None:
    if retransmission == "go-back-n" and mode in ("round_robin", "random"):
        pytest.skip("go-back-N takes packets that overtake each other for lost ones")
    events = [
        EventSection(link="p0l0<->p0s1", state="down", at=5_000_000),
        EventSection(link="p0l0<->p0s1", state="up", at=40_000_000),
    ]
    result = permuted(mode, retransmission=retransmission, events=events)
    assert result.flows[0].bytes_delivered == SIZE_BYTES * 16


def test_results_and_provenance_say_how_paths_were_chosen() -> None:
    data = permuted("adaptive", routing={"hysteresis": 2048}).as_dict()
    assert data["made_by"]["routing"]["load_balancing"] == "adaptive"
    effective = data["made_by"]["effective"]["load_balancing"]
    assert (effective["mode"], effective["flowlet_gap_ps"], effective["hysteresis_bytes"]) == (
        "adaptive",
        0,
        2048,
    )
    (ages,) = data["queue_depth_ages"]
    assert ages["choices"] > ages["with_a_queue"] > 0
    # A queue that holds packets sends one after the other, so its depth is no older than a frame takes.
    assert ages["age_99_ps"] <= 1_024_000
    assert "queue_depth_ages" not in permuted("flow").as_dict()


@pytest.mark.parametrize("mode", MODES)
def test_the_controller_shows_the_mode_and_the_ages(mode: str) -> None:
    routing = RoutingSection(load_balancing=mode, **({"hysteresis": 8000} if mode == "adaptive" else {}))  # type: ignore[arg-type]
    transport = TransportSection(retransmission="selective-repeat")
    with Fabric(fabric(), clock="virtual", routing=routing, transport=transport) as running:
        running.permutation(SIZE_BYTES, data="lengths")
        control = running.lab.controller
        session = control.session("p0l0")
        (row,) = control.call(load_balancing_rows(session, None, Lab({})))
    assert (row["switch"], row["mode"]) == ("p0l0", mode)
    assert row["flowlet_gap_ns"] == {"flowlet": 50_000, "adaptive": 0}.get(mode)
    assert row["hysteresis_bytes"] == (8000 if mode == "adaptive" else None)
    assert (row["choices"] > 0) == (mode == "adaptive")


def test_adaptive_goes_by_flowlets_where_receivers_need_order() -> None:
    effective = permuted("adaptive", retransmission="go-back-n").as_dict()["made_by"]["effective"]
    assert effective["load_balancing"]["flowlet_gap_ps"] == 50_000_000


@pytest.mark.parametrize(
    ("keys", "place", "words"),
    [
        (
            {"routing": {"kind": "shortest"}},
            "routing.kind",
            ["no kind of routing 'shortest'", "shortest_paths"],
        ),
        ({"routing": {"load_balancing": "luck"}}, "routing.load_balancing", ["'luck'", "'round_robin'"]),
        ({"routing": {"flowlet_gap": "1us"}}, "routing", ["flowlet_gap: load_balancing: flow has none"]),
    ],
)
def test_a_section_that_cannot_hold_is_refused_with_its_place(keys: str, place: str, words: list[str]) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_scenario({"clock": "virtual", **keys})
    for word in [place, *words]:
        assert word in str(caught.value)
