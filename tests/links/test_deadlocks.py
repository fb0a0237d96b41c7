"""Routes in which lossless classes may deadlock are refused, and named where a failure brings them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.topologies.test_builder import torus
from weft import Fabric, topologies
from weft.errors import BadInputError
from weft.scenario import CreditsSection, LinkEventSection, PfcSection

LOSSLESS = {"pfc": PfcSection(classes=[3]), "credits": CreditsSection(classes=[3])}
ALLOWED = {
    "pfc": PfcSection(classes=[3], allow_deadlock=True),
    "credits": CreditsSection(classes=[3], allow_deadlock=True),
}


@pytest.mark.parametrize("name", LOSSLESS)
@pytest.mark.parametrize("clock", ["virtual", "real"])
def test_a_cycle_of_buffers_is_refused_hop_by_hop(
    name: str, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.clocks.lab.require_for", lambda *_: None)  # of the machine
    cycle = r"p0n\d:\d \(lane 0\)( → p0n\d:\d \(lane 0\)){4}"
    keys: dict[str, Any] = {name: LOSSLESS[name]}
    with (
        pytest.raises(
            BadInputError,
            match=rf"{name}\.classes: \[3\] may deadlock: .*shortest_paths.*: {cycle}\. .*{name}\.allow_deadlock: true",
        ),
        Fabric(torus((4,)), clock=clock, **keys),
    ):
        pass


@pytest.mark.parametrize("name", ALLOWED)
def test_it_runs_nevertheless_where_that_is_said(name: str) -> None:
    keys: dict[str, Any] = {name: ALLOWED[name]}
    with Fabric(torus((4,)), clock="virtual", **keys) as fabric:
        assert fabric.incast("h0", 20_000).bytes_delivered == 60_000


def test_lossy_classes_may_go_round() -> None:
    with Fabric(torus((4,)), clock="virtual") as fabric:
        assert fabric.incast("h0", 20_000).bytes_delivered == 60_000


def test_a_failure_that_brings_a_cycle_is_reported() -> None:
    """Leaves that have kept two spines each make a ring; the last link to fail closes it."""
    topology = topologies.leaf_spine(planes=1, leaves=4, spines=4, hosts_per_leaf=1)
    gone = [(leaf, spine) for leaf in range(4) for spine in range(4) if spine not in (leaf, (leaf + 1) % 4)]
    events = [
        LinkEventSection(link=f"p0l{leaf}<->p0s{spine}", state="down", at=(1 + number) * 10**6)
        for number, (leaf, spine) in enumerate(gone)
    ]
    with Fabric(topology, clock="virtual", pfc=LOSSLESS["pfc"], events=events) as fabric:
        fabric.incast("h0", 100_000)
        results = fabric.summary().link_events
    *before, last = [event.route_cycle for event in results]
    assert last.count("p0l") >= 4
    assert before[0] == ""
