"""Latency of switches and cut-through: closed forms to the picosecond."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.refusals import refused
from weft import Fabric, topologies
from weft.clocks.environment import require_for
from weft.engine import Collector, Engine, Link, PortMac, TransmitPort
from weft.errors import BadInputError, EnvironmentLacksError
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import AggregationSection, SwitchingSection, parse_scenario
from weft.scenario.options import FabricOptions
from weft.topologies import FabricSpec, serialisation_ps

ETHERNET, INT_SHIM, IPV4, IPV6, UDP, BTH, RETH, AETH, IMMEDIATE, ICRC = 14, 46, 20, 40, 8, 12, 16, 4, 4, 4
AGGREGATION_FRAME = 342
GBPS = 10**9
DELAY_PS, LATENCY_PS = 600_000, 450_000
CUT_THROUGH = SwitchingSection(mode="cut-through", latency=LATENCY_PS)
STORED = SwitchingSection(latency=LATENCY_PS)


def two_leaves(host_rate_bps: int = 100 * GBPS, fabric_rate_bps: int = 100 * GBPS) -> FabricSpec:
    return topologies.leaf_spine(
        planes=1,
        leaves=2,
        spines=1,
        hosts_per_leaf=1,
        host_rate_bps=host_rate_bps,
        fabric_rate_bps=fabric_rate_bps,
        delay_ps=DELAY_PS,
    )


def rates_of(fabric: FabricSpec) -> list[int]:
    """Of the links from one host to the other."""
    return [hop.link.rate_bps for hop in topologies.paths(fabric, "h0", "h1")[0].hops]


def write_ps(fabric: FabricSpec, switching: SwitchingSection, size_bytes: int, **options: Any) -> int:
    with Fabric(fabric, clock="virtual", switching=switching, **options) as running:
        return running.incast("h1", size_bytes).time_ps


def stored_ps(frame_bytes: int, rates: list[int], latency_ps: int) -> int:
    """One frame from end to end: whole on every link, and the latency in every switch."""
    switches = len(rates) - 1
    sent = sum(serialisation_ps(frame_bytes, rate) for rate in rates)
    return sent + len(rates) * DELAY_PS + switches * latency_ps


def cut_ps(frame_bytes: int, header_bytes: int, rates: list[int], latency_ps: int) -> int:
    """One frame from end to end: a switch sends when its headers have come, or all of it where it would run dry."""
    first_bit = DELAY_PS
    for arriving, leaving in pairwise(rates):
        whole_ps, headers_ps = (serialisation_ps(each, arriving) for each in (frame_bytes, header_bytes))
        runs_dry = headers_ps + serialisation_ps(frame_bytes, leaving) < whole_ps
        first_bit += (whole_ps if runs_dry else headers_ps) + latency_ps + DELAY_PS
    return first_bit + serialisation_ps(frame_bytes, rates[-1])


def frames(payload_bytes: int, ip_bytes: int = IPV4, shim_bytes: int = INT_SHIM) -> tuple[int, int, int, int]:
    """Size and headers of a WRITE of one packet with immediate, and of its acknowledgement."""
    outer = ETHERNET + shim_bytes + ip_bytes + UDP + BTH
    data, acknowledgement = outer + RETH + IMMEDIATE, outer + AETH
    return data + payload_bytes + ICRC, data, acknowledgement + ICRC, acknowledgement


@pytest.mark.parametrize("payload_bytes", [64, 1024])
@pytest.mark.parametrize(("ip_version", "ip_bytes"), [(4, IPV4), (6, IPV6)])
def test_one_flow_cut_through_is_serialised_once(payload_bytes: int, ip_version: int, ip_bytes: int) -> None:
    """Serialisation once, the headers' in each of three switches, their latencies, and propagation."""
    fabric = two_leaves()
    data, data_headers, back, back_headers = frames(payload_bytes, ip_bytes)
    rate = 100 * GBPS
    one_way = serialisation_ps(data, rate) + 3 * (serialisation_ps(data_headers, rate) + LATENCY_PS) + 4 * DELAY_PS
    other_way = serialisation_ps(back, rate) + 3 * (serialisation_ps(back_headers, rate) + LATENCY_PS) + 4 * DELAY_PS
    assert cut_ps(data, data_headers, [rate] * 4, LATENCY_PS) == one_way
    assert write_ps(fabric, CUT_THROUGH, payload_bytes, ip_version=ip_version) == one_way + other_way


def test_headers_are_what_the_program_parses() -> None:
    """Without INT a packet has 46 bytes less of them."""
    data, data_headers, back, back_headers = frames(512, shim_bytes=0)
    rates = [100 * GBPS] * 4
    took = write_ps(two_leaves(), CUT_THROUGH, 512, int_telemetry=False)
    assert took == cut_ps(data, data_headers, rates, LATENCY_PS) + cut_ps(back, back_headers, rates, LATENCY_PS)


@pytest.mark.parametrize("switching", [STORED, SwitchingSection()])
def test_one_flow_stored_and_forwarded(switching: SwitchingSection) -> None:
    data, _, back, _ = frames(1024)
    rates = [100 * GBPS] * 4
    took = write_ps(two_leaves(), switching, 1024)
    assert took == stored_ps(data, rates, switching.latency) + stored_ps(back, rates, switching.latency)


@pytest.mark.parametrize(("host_rate", "fabric_rate"), [(100, 400), (400, 100), (100, 100)])
def test_a_packet_waits_for_its_end_where_the_line_out_is_faster(host_rate: int, fabric_rate: int) -> None:
    fabric = two_leaves(host_rate * GBPS, fabric_rate * GBPS)
    rates = rates_of(fabric)
    assert len(set(rates)) == len({host_rate, fabric_rate})
    data, data_headers, back, back_headers = frames(1024)
    expected = cut_ps(data, data_headers, rates, LATENCY_PS) + cut_ps(back, back_headers, rates, LATENCY_PS)
    assert write_ps(fabric, CUT_THROUGH, 1024) == expected


@pytest.mark.parametrize("packets", [2, 9])
def test_packets_follow_each_other_at_line_rate(packets: int) -> None:
    """Each later packet costs its serialisation, once, in either mode."""
    outer = ETHERNET + INT_SHIM + IPV4 + UDP + BTH + ICRC
    rate = 100 * GBPS
    times = {switching.mode: write_ps(two_leaves(), switching, packets * 1024) for switching in (CUT_THROUGH, STORED)}
    back = outer + AETH
    line_ps = (
        serialisation_ps(outer + RETH + 1024, rate)
        + (packets - 2) * serialisation_ps(outer + 1024, rate)
        + serialisation_ps(outer + IMMEDIATE + 1024, rate)
    )
    last_headers, back_headers = outer - ICRC + IMMEDIATE, outer - ICRC + AETH
    fixed_ps = 8 * DELAY_PS + 6 * LATENCY_PS + serialisation_ps(back, rate)
    header_ps = 3 * (serialisation_ps(last_headers, rate) + serialisation_ps(back_headers, rate))
    # The first packet has more headers, but those of the last are parsed while it is being received.
    first_headers = outer - ICRC + RETH
    behind_first = 3 * (serialisation_ps(first_headers, rate) - serialisation_ps(last_headers, rate))
    assert times["cut-through"] == line_ps + fixed_ps + header_ps + behind_first
    assert times["cut-through"] < times["store-and-forward"]


@pytest.mark.parametrize("switching", [STORED, CUT_THROUGH], ids=["stored", "cut-through"])
@pytest.mark.parametrize("size_bytes", [256, 256 * 40])
def test_what_the_program_adds_up_is_stored_first(switching: SwitchingSection, size_bytes: int) -> None:
    """P packets of s over H links up and down, each whole on every link: P·s + (H − 1)·(s + latency) + H·d."""
    fabric = topologies.leaf_spine(
        planes=1, leaves=2, spines=1, hosts_per_leaf=2, host_rate_bps=100 * GBPS, fabric_rate_bps=100 * GBPS,
        delay_ps=DELAY_PS,
    )  # fmt: skip
    frame_ps = serialisation_ps(AGGREGATION_FRAME, 100 * GBPS)
    inputs = [np.arange(size_bytes // 4, dtype=np.int32)] * 4
    narrow = AggregationSection(lanes=64)
    with Fabric(fabric, clock="virtual", switching=switching, aggregation=narrow) as running:
        run = running.run(CollectiveRequest("allreduce", inputs, "in-network"))
    assert run.result.ok
    packets, links = size_bytes // 256, 4
    assert run.result.time_ps == packets * frame_ps + (links - 1) * (frame_ps + LATENCY_PS) + links * DELAY_PS


def test_workloads_compare_with_ideal_times_that_know_the_latency() -> None:
    """A lone flow takes its ideal time: both models of it are the simulation's."""
    result = run_scenario(
        parse_scenario(
            {
                "clock": "virtual",
                "fabric": {
                    "planes": 1,
                    "leaves": 2,
                    "spines": 1,
                    "hosts_per_leaf": 1,
                    "host_rate": "100Gbps",
                },
                "switching": {"latency": "450ns"},
                "observe": {"flows": True},
                "traffic": [{"incast": "h1", "bytes_per_sender": "9KiB"}],
            }
        )
    )
    flows = result.observations.tables["flows"]
    assert (flows["end_ps"] - flows["start_ps"]).tolist() == flows["ideal_ps"].tolist()


@pytest.mark.parametrize("mode", ["store-and-forward", "cut-through"])
@pytest.mark.parametrize("seed", [1, 2])
def test_results_do_not_depend_on_the_number_of_workers(tmp_path: Path, mode: str, seed: int) -> None:
    written = []
    for workers in (1, 2, 3):
        result = run_scenario(
            parse_scenario(
                {
                    "clock": "virtual",
                    "seed": seed,
                    "workers": workers,
                    "fabric": {
                        "planes": 2, "leaves": 2, "spines": 2, "hosts_per_leaf": 3, "host_rate": "100Gbps",
                        "fabric_rate": "200Gbps", "delay": "300ns",
                    },
                    "switching": {"mode": mode, "latency": "450ns"},
                    "buffer": {"capacity": "400KB"},
                    "pfc": {"classes": [3], "xoff": "20KB"},
                    "faults": {"loss": 0.001},
                    "observe": {"queues": "all", "flows": True, "drops": True, "pauses": True},
                    "traffic": [
                        {"permutation": "64KiB"},
                        {"incast": "h0", "bytes_per_sender": "64KiB"},
                        {"collective": "allreduce", "sizes": ["32KiB"]},
                    ],
                }
            )
        )  # fmt: skip
        assert result.ok
        folder = tmp_path / str(workers)
        result.save(folder)
        written.append({path.name: path.read_bytes() for path in folder.iterdir() if path.name != "wall_times.json"})
    assert written[0] == written[1] == written[2]


@settings(deadline=None, max_examples=40)
@given(
    latency_ps=st.integers(0, 10**6),
    sends=st.lists(st.tuples(st.integers(0, 200_000), st.integers(60, 1500)), min_size=1, max_size=30),
)
def test_latency_shifts_everything_and_changes_nothing_else(latency_ps: int, sends: list[tuple[int, int]]) -> None:
    """Through a switch of latency L, frames come in the order and at the times of a link that is L longer."""

    def arrivals(mac_latency_ps: int, delay_ps: int) -> list[tuple[int, int]]:
        engine = Engine()
        collector = Collector(engine)
        link = Link(engine, delay_ps=delay_ps)
        port = TransmitPort(engine, link, rate_bps=100 * GBPS)
        mac = PortMac(engine, port, collector)
        mac.set_switching(latency_ps=mac_latency_ps)
        link.connect(mac)
        for gap_ps, size_bytes in sends:
            engine.run_for(gap_ps)
            port.enqueue(bytes(size_bytes))
        engine.run()
        assert mac.stats()["passing"] == {"packets": 0, "bytes": 0}
        return [(time_ps, len(data)) for time_ps, _, data in collector.packets]

    assert arrivals(latency_ps, 1000) == arrivals(0, 1000 + latency_ps)


def test_what_is_in_the_switch_but_not_in_its_queue_is_reported() -> None:
    engine = Engine()
    link = Link(engine, delay_ps=1000)
    port = TransmitPort(engine, link, rate_bps=8 * 10**12)  # a byte in a picosecond
    mac = PortMac(engine, port, Collector(engine))
    mac.set_switching(latency_ps=500)
    link.connect(mac)
    port.enqueue(bytes(100))
    engine.run_until(1100)
    assert mac.stats()["passing"] == {"packets": 1, "bytes": 100}
    engine.run_until(1599)
    assert mac.stats()["passing"] == {"packets": 1, "bytes": 100}
    engine.run_until(1600)
    assert mac.stats()["passing"] == {"packets": 0, "bytes": 0}


# --- refusals


@pytest.mark.parametrize(
    ("switching", "words"),
    [
        ({"mode": "cut"}, ["switching.mode", "'store-and-forward' or 'cut-through'", "'cut'"]),
        ({"latency": "-1ns"}, ["switching.latency"]),
        ({"latancy": "1ns"}, ["unknown key 'switching.latancy'", "did you mean 'latency'"]),
    ],
)
def test_errors_name_the_key_and_what_is_valid(switching: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(BadInputError) as caught:
        parse_scenario({"switching": switching})
    for word in words:
        assert word in str(caught.value)


def test_cut_through_is_refused_in_real_time() -> None:
    options = FabricOptions(clock="real", switching=CUT_THROUGH)
    with refused(EnvironmentLacksError, place="switching.mode", problem="cut-through is the virtual"):
        require_for(two_leaves(), options)


def test_cut_through_needs_a_rate_and_a_program() -> None:
    engine = Engine()
    mac = PortMac(engine, TransmitPort(engine, Link(engine)), Collector(engine))
    with pytest.raises(ValueError, match="cut-through needs a port with a rate, and a parser"):
        mac.set_switching(cut_through=True)
    with pytest.raises(ValueError, match="latency_ps is -1"):
        mac.set_switching(latency_ps=-1)
