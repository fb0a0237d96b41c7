"""Routes by intermediates in virtual time: verified collectives without loss or deadlock, and what UGAL-L is for."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from weft import Fabric
from weft.run.collectives import CollectiveRequest
from weft.scenario import CreditsSection, PfcSection, RoutingSection, TransportSection
from weft.scenario.events import EventSection
from weft.topologies import FabricSpec
from weft.topologies.kinds.dragonfly import dragonfly
from weft.topologies.kinds.hyperx import hyperx
from weft.topologies.kinds.torus import torus
from weft.traffic.patterns import Flow

RATES = {"host_rate_bps": 100e9, "delay_ps": 200_000}
DRAGONFLY = dragonfly(groups=5, routers_per_group=2, global_links_per_router=2, hosts_per_switch=1, **RATES)
CASES = [
    (DRAGONFLY, "dragonfly_valiant", [3, 4, 5]),
    (DRAGONFLY, "dragonfly_ugal", [3, 4, 5]),
    (hyperx(shape=(4, 2), **RATES), "dimension_order_valiant", [3, 4, 6, 7]),
    (torus(shape=[3, 3], **RATES), "dimension_order_ugal", [2, 3, 4, 5]),
]
TRANSPORT = TransportSection(retransmission="selective-repeat", congestion_control="fixed-window")


def running(fabric: FabricSpec, kind: str, **more: object) -> Fabric:
    options = {"clock": "virtual", "seed": 1, "int_telemetry": False, "transport": TRANSPORT, **more}
    return Fabric(fabric, routing=RoutingSection(kind=kind), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("fabric", "kind", "classes"), CASES, ids=[case[1] for case in CASES])
@pytest.mark.parametrize("flow_control", ["pfc", "credits"])
def test_an_all_reduce_is_right_and_loses_nothing(
    fabric: FabricSpec, kind: str, classes: list[int], flow_control: str
) -> None:
    more: dict[str, object] = {"credits": CreditsSection(classes=classes, buffer=8192)}
    if flow_control == "pfc":
        more = {"pfc": PfcSection(classes=classes)}
    with running(fabric, kind, **more) as found:
        rng = np.random.default_rng(1)
        inputs = [rng.integers(-1000, 1000, 28_800, dtype=np.int32) for _ in fabric.hosts]
        reduced = found.run(CollectiveRequest("allreduce", inputs))
        exchanged = found.run(CollectiveRequest("alltoall", inputs, "direct"))
        summary = found.summary().as_dict()
    assert reduced.result.wrong == exchanged.result.wrong == 0
    assert all((each == sum(inputs)).all() for each in reduced.buffers)
    assert summary["drops"] == {}
    assert summary["packet_conservation"]["missing"]["packets"] == 0


@pytest.mark.parametrize("kind", ["dragonfly_valiant", "dragonfly_ugal"])
def test_a_seed_gives_the_same_run_again(kind: str) -> None:
    times = []
    for _ in range(2):
        with running(DRAGONFLY, kind) as found:
            times.append([found.permutation(50_000, data="lengths").time_ps for _ in range(2)])
    assert times[0] == times[1]
    # A run does not depend on the registers that the one before has left.
    assert kind != "dragonfly_ugal" or times[0][0] > 0


def test_traffic_between_neighbouring_groups_spreads_over_others() -> None:
    """Each group's eight hosts write to the next group, to which one link leads."""
    fabric = dragonfly(**RATES)
    times = {}
    for kind, lanes in (("dragonfly_minimal", 2), ("dragonfly_valiant", 3), ("dragonfly_ugal", 3)):
        with running(fabric, kind, credits=CreditsSection(classes=[3], buffer=8192)) as found:
            assert found.lab.options.lossless_classes == (3, 4, 5)[:lanes]
            flows = [Flow(host, (host + 8) % 72, 100_000) for host in range(72)]
            times[kind] = found.run_flows("to the next group", flows).time_ps
    assert times["dragonfly_valiant"] < times["dragonfly_minimal"] / 2
    assert times["dragonfly_ugal"] < times["dragonfly_minimal"] / 2


def test_links_that_fail_are_passed() -> None:
    link = next(each for each in DRAGONFLY.links if not each.a.node.startswith("h"))
    events = [EventSection(link=f"{link.a.node}<->{link.b.node}", state="down", at=2_000_000)]
    with running(DRAGONFLY, "dragonfly_valiant", events=events) as found:
        result = found.permutation(100_000)
    assert result.bytes_delivered == 100_000 * 10


def test_hpcc_follows_the_fullest_of_several_ways() -> None:
    """On two links of half the load each, a way's own and the detour's, windows neither collapse nor fill queues."""
    hpcc = TransportSection(retransmission="selective-repeat", congestion_control="hpcc")
    with running(DRAGONFLY, "dragonfly_ugal", int_telemetry=True, transport=hpcc) as found:
        result = found.permutation(200_000)
        summary = found.summary().as_dict()
    assert result.bytes_delivered == 200_000 * 10
    assert summary["drops"] == {}


def test_a_threshold_is_ugal_s_alone() -> None:
    assert RoutingSection(kind="dragonfly_ugal", ugal_threshold=4096, depth_lifetime=10**6).ugal.threshold_bytes == 4096
    with pytest.raises(ValueError, match="ugal_threshold: kind: dragonfly_valiant has none"):
        RoutingSection(kind="dragonfly_valiant", ugal_threshold=4096)
    with pytest.raises(ValueError, match="depth_lifetime: load_balancing: flow has none"):
        RoutingSection(kind="dragonfly_valiant", depth_lifetime=10**6)


@pytest.mark.parametrize(
    ("routing", "retransmission", "cause"),
    [
        (RoutingSection(kind="dragonfly_valiant"), "go-back-n", "routing.kind: dragonfly_valiant"),
        (RoutingSection(load_balancing="random"), "go-back-n", "routing.load_balancing: random"),
        (RoutingSection(kind="dragonfly_valiant"), "selective-repeat", None),
        (RoutingSection(load_balancing="adaptive"), "go-back-n", None),
    ],
)
def test_go_back_n_behind_switches_that_reorder_is_warned_of(
    routing: RoutingSection, retransmission: Literal["go-back-n", "selective-repeat"], cause: str | None
) -> None:
    transport = TransportSection(retransmission=retransmission)
    with Fabric(DRAGONFLY, clock="virtual", routing=routing, transport=transport, int_telemetry=False) as found:
        result = found.summary()
    assert [warning.split(" sends ")[0] for warning in result.warnings] == ([cause] if cause else [])
    assert ("warnings" in result.as_dict()) == bool(cause)
