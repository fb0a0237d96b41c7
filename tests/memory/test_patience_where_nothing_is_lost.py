"""Where PFC or credits lose nothing, a packet that is late waits: no host repeats it, and no lane starves it."""

from __future__ import annotations

from typing import Any

import pytest

from weft import Fabric
from weft.clocks.switch_memory import quantum_by_class
from weft.quantities.traffic_classes import CLASSES
from weft.scenario import CreditsSection, PfcSection, RoutingSection, SchedulingSection, TransportSection
from weft.scenario.options import FabricOptions
from weft.topologies import FabricSpec
from weft.topologies.kinds.dragonfly import dragonfly
from weft.topologies.kinds.torus import torus
from weft.traffic.patterns import Flow, incast
from weft.traffic.transport_settings import PathTraits, TransportSettings

RATES: dict[str, Any] = {"host_rate_bps": 100e9, "delay_ps": 200_000}
DRAGONFLY = dragonfly(groups=5, routers_per_group=2, global_links_per_router=2, hosts_per_switch=4, **RATES)
RING = torus(shape=(8,), **RATES)
TRANSPORT = TransportSection(retransmission="selective-repeat")
FRAME_BYTES = 4200


def run(fabric: FabricSpec, kind: str, flows: list[Flow], **options: Any) -> tuple[int, int, dict[str, Any]]:
    """Return the time, the repeated packets and the parameters in force."""
    with Fabric(
        fabric,
        clock="virtual",
        seed=1,
        mtu_bytes=4096,
        int_telemetry=False,
        routing=RoutingSection(kind=kind),
        **{"transport": TRANSPORT, **options},
    ) as found:
        result = found.run_flows("flows", flows, data="lengths")
        summary = found.summary()
    assert summary.as_dict()["drops"] == {}
    return result.time_ps, summary.retransmissions, summary.as_dict()["made_by"]["effective"]


def to_the_next_group(size_bytes: int) -> list[Flow]:
    hosts = len(DRAGONFLY.hosts)
    return [Flow(host, (host + 8) % hosts, size_bytes) for host in range(hosts)]


@pytest.mark.parametrize("kind", ["dragonfly_ugal", "dragonfly_valiant"])
@pytest.mark.parametrize(
    "lossless",
    [{"credits": CreditsSection(classes=[3, 4, 5])}, {"pfc": PfcSection(classes=[3, 4, 5])}],
    ids=["credits", "pfc"],
)
def test_packets_over_detours_are_not_repeated(kind: str, lossless: dict[str, Any]) -> None:
    _, repeated, effective = run(DRAGONFLY, kind, to_the_next_group(1 << 19), **lossless)
    assert repeated == 0
    (plane,) = effective["transport"]["planes"]
    assert plane["reordering_window_ps"] == plane["least_retransmission_timeout_ps"]


@pytest.mark.parametrize("routes", [(RING, "dimension_order", [3, 4]), (DRAGONFLY, "dragonfly_minimal", [3, 4])])
def test_an_incast_over_lanes_takes_no_longer_than_its_line_and_repeats_nothing(
    routes: tuple[FabricSpec, str, list[int]],
) -> None:
    fabric, kind, lanes = routes
    senders = range(1, len(fabric.hosts))
    size_bytes = (14 << 20) // len(senders)
    time_ps, repeated, effective = run(
        fabric, kind, incast(0, senders, size_bytes), credits=CreditsSection(classes=lanes)
    )
    assert repeated == 0
    ideal_ps = size_bytes * len(senders) * 8e12 / 100e9 * FRAME_BYTES / 4096
    assert time_ps < 1.05 * ideal_ps
    quanta = effective["quantum_bytes"]
    assert [number for number in range(CLASSES) if quanta[number]] == lanes
    assert len(set(quanta)) == 2


def test_lanes_take_turns_unless_the_scenario_says_otherwise() -> None:
    routing = RoutingSection(kind="dimension_order")

    def quanta(**scheduling: Any) -> tuple[int, ...]:
        options = FabricOptions(clock="virtual", routing=routing, scheduling=SchedulingSection(**scheduling))
        return quantum_by_class(RING, options, FRAME_BYTES)

    assert quanta() == (0, 0, 0, FRAME_BYTES, FRAME_BYTES, 0, 0, 0)
    assert quanta(quantum={3: 64, 4: 128}) == (0, 0, 0, 64, 128, 0, 0, 0)
    # A class without a quantum would go before the lanes, whatever its number.
    assert not any(quanta(classes=[1]))
    one_lane = FabricOptions(clock="virtual", routing=RoutingSection(kind="shortest_paths"))
    assert not any(quantum_by_class(DRAGONFLY, one_lane, FRAME_BYTES))


@pytest.mark.parametrize(
    ("settings", "traits", "window_ps"),
    [
        ({}, {}, 0),
        ({"path": "spray"}, {}, 10),
        ({}, {"sprayed_by_switches": True}, 10),
        ({"path": "spray"}, {"lossless_classes": (4,)}, 10),
        ({}, {"lossless_classes": (3,)}, 0),
        ({"path": "spray"}, {"lossless_classes": (3,)}, 1000),
        ({}, {"sprayed_by_switches": True, "lossless_classes": (3, 4)}, 1000),
        ({"path": "spray", "reordering_window": 7}, {"lossless_classes": (3,)}, 7),
    ],
)
def test_the_reordering_window_follows_what_can_be_lost(
    settings: dict[str, Any], traits: dict[str, Any], window_ps: int
) -> None:
    transport = TransportSettings(retransmission="selective-repeat", **settings)
    options = transport.queue_pair_options(10, 1000, PathTraits(**traits))
    assert options["reordering_window_ps"] == window_ps


def test_credits_on_some_links_keep_no_class_from_being_lost() -> None:
    some = FabricOptions(clock="virtual", credits=CreditsSection(classes=[3], links=["h0 <-> p0l0"]))
    everywhere = FabricOptions(clock="virtual", credits=CreditsSection(classes=[3]))
    assert (some.lossless_classes, everywhere.lossless_classes) == ((), (3,))
