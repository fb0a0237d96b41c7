"""Routes in which lossless classes may deadlock are refused, and named where a failure brings them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.links.ring_routing import ring, route_clockwise
from weft import Fabric, topologies
from weft.errors import BadInputError
from weft.run.spec import fabric_run_spec
from weft.scenario import CreditsSection, EventSection, PfcSection, RoutingSection
from weft.traffic.patterns import Flow

LOSSLESS = {"pfc": PfcSection(classes=[3]), "credits": CreditsSection(classes=[3])}
ALLOWED = {
    "pfc": PfcSection(classes=[3], allow_deadlock=True),
    "credits": CreditsSection(classes=[3], allow_deadlock=True),
}


@pytest.mark.parametrize("name", LOSSLESS)
@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_a_cycle_of_buffers_is_refused_hop_by_hop(name: str, clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.clocks.lab.require_for", lambda *_: None)  # of the machine
    cycle = r"p0n\d:\d \(lane 0\)( → p0n\d:\d \(lane 0\)){4}"
    keys: dict[str, Any] = {name: LOSSLESS[name]}
    with (
        pytest.raises(
            BadInputError,
            match=rf"{name}\.classes: \[3\] may deadlock: .*shortest_paths.*: {cycle}\. .*{name}\.allow_deadlock: true",
        ),
        Fabric(ring(4), clock=clock, **keys),
    ):
        pass


@pytest.mark.parametrize("name", ALLOWED)
def test_it_runs_nevertheless_where_that_is_said(name: str) -> None:
    keys: dict[str, Any] = {name: ALLOWED[name]}
    with Fabric(ring(4), clock="virtual", **keys) as fabric:
        assert fabric.incast("h0", 20_000).bytes_delivered == 60_000


def test_lossy_classes_may_go_round() -> None:
    with Fabric(ring(4), clock="virtual") as fabric:
        assert fabric.incast("h0", 20_000).bytes_delivered == 60_000


def test_a_failure_that_brings_a_cycle_is_reported() -> None:
    """Leaves that have kept two spines each make a ring; the last link to fail closes it."""
    topology = topologies.leaf_spine(planes=1, leaves=4, spines=4, hosts_per_leaf=1)
    gone = [(leaf, spine) for leaf in range(4) for spine in range(4) if spine not in (leaf, (leaf + 1) % 4)]
    events = [
        EventSection(link=f"p0l{leaf}<->p0s{spine}", state="down", at=(1 + number) * 10**6)
        for number, (leaf, spine) in enumerate(gone)
    ]
    with Fabric(topology, clock="virtual", pfc=LOSSLESS["pfc"], events=events) as fabric:
        fabric.incast("h0", 100_000)
        results = fabric.summary().link_events
    *before, last = [event.route_cycle for event in results]
    assert last.count("p0l") >= 4
    assert before[0] == ""


# --- lanes


SMALL: dict[str, Any] = {
    "pfc": {"pfc": PfcSection(classes=[3, 4], xoff=3000, hysteresis=1000)},
    "credits": {"credits": CreditsSection(classes=[3, 4], buffer=2560)},
}


def everyone_across(fabric: Fabric, size_bytes: int = 100_000) -> None:
    """Each host of a ring of four sends to the one half round, which fills every link for two hops."""
    count = len(fabric.topology.hosts)
    flows = [Flow(source, (source + count // 2) % count, size_bytes) for source in range(count)]
    assert fabric.run_flows("across", flows).bytes_delivered == count * size_bytes


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("ip_version", [4, 6])
def test_a_dateline_takes_packets_round_a_ring_without_loss(
    name: str, ip_version: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two lanes of little memory, all links full: every packet arrives, and the second lane has carried some."""
    route_clockwise(monkeypatch, with_dateline=True)
    with Fabric(ring(4), clock="virtual", ip_version=ip_version, **SMALL[name]) as fabric:
        everyone_across(fabric)
        stats = fabric.lab.switch_stats()
        summary = fabric.summary()
    assert stats is not None
    assert summary.drops == {}
    assert summary.retransmissions == 0
    sent = [
        port["transmit"]["classes"][4]["transmitted"]["packets"]
        for switch in stats["switches"].values()
        for port in switch["ports"].values()
    ]
    assert sum(sent) > 0


@pytest.mark.parametrize(("given", "lossless"), [([3], (3, 4)), ([4, 3], (3, 4)), ([6, 3], (3, 4, 6, 7))])
@pytest.mark.parametrize("section", [CreditsSection, PfcSection])
def test_lanes_of_lossless_classes_are_lossless(
    section: type[CreditsSection | PfcSection],
    given: list[int],
    lossless: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    route_clockwise(monkeypatch, with_dateline=True)
    name = "pfc" if section is PfcSection else "credits"
    options: dict[str, Any] = {name: section(classes=given)}
    assert fabric_run_spec(ring(4), clock="virtual", **options).options.lossless_classes == lossless
    # Routes of one lane need no other class.
    monkeypatch.undo()
    options |= {"routing": RoutingSection(kind="up_down")}
    assert fabric_run_spec(ring(4), clock="virtual", **options).options.lossless_classes == tuple(sorted(given))


def test_classes_with_too_few_lanes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    route_clockwise(monkeypatch, with_dateline=True)
    refused = pytest.raises(BadInputError, match=r"credits\.classes: .*class 0 has 1 of the 2 lanes that routes need")
    with refused, Fabric(ring(4), clock="virtual", credits=CreditsSection(classes=[3, 0])):
        pass
