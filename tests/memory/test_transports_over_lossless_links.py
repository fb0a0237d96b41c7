"""UET and MRC over links that lose nothing, by credits, PFC or retry: hosts repeat nothing and blame no path."""

from __future__ import annotations

from typing import Any

import pytest

from weft import topologies
from weft.clocks.switch_memory import classes_of_dscps
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import CreditsSection, TransportSection, parse_scenario
from weft.scenario.options import FabricOptions

FABRIC: dict[str, Any] = {
    "planes": 1,
    "leaves": 2,
    "spines": 4,
    "hosts_per_leaf": 4,
    "host_rate": "100Gb/s",
    "delay": "1us",
    "queue_capacity": "96KiB",
}
UET: dict[str, Any] = {"protocol": "uet"}
MRC: dict[str, Any] = {"protocol": "mrc"}
TRANSPORTS = pytest.mark.parametrize(
    "transport",
    [UET, UET | {"service": "rod"}, UET | {"receiver_credits": True}, MRC],
    ids=["rud", "rod", "rccc", "mrc"],
)
# Windows do not shrink: the links alone hold senders back.
OPEN: dict[str, Any] = {"congestion_control": "fixed-window"}
CREDITS: dict[str, Any] = {"credits": {"classes": [3], "buffer": "32KiB"}}
PFC: dict[str, Any] = {"pfc": {"classes": [3], "xoff": "16KiB"}, "buffer": {"capacity": "4MiB"}}
RETRY: dict[str, Any] = {"faults": {"loss": 0.001}, "link_retry": {"links": ["*<->*"]}}
INCAST: dict[str, Any] = {"incast": "h0", "bytes_per_sender": "512KiB", "data": "lengths"}
BYTES = 7 * 512 * 1024


def run(transport: dict[str, Any], **more: Any) -> RunResult:
    tree = {
        "clock": "virtual",
        "hash_seed": 1,
        "int": False,
        "fabric": FABRIC,
        "transport": transport,
        "traffic": [INCAST],
    }
    return run_scenario(run_spec(parse_scenario(tree | more, units_required=True)))


def trimmed_packets(result: RunResult) -> int:
    return sum(each.trimmed_packets for each in result.trimming)


@TRANSPORTS
@pytest.mark.parametrize("lossless", [CREDITS, PFC], ids=["credits", "pfc"])
def test_an_incast_loses_and_repeats_nothing(transport: dict[str, Any], lossless: dict[str, Any]) -> None:
    result = run(transport | OPEN, **lossless)
    assert result.drops == {}
    assert result.retransmissions == 0
    assert result.flows[0].bytes_delivered == BYTES
    assert not any(each.timeouts or each.failures for each in result.path_signals)
    waited = sum(each.stalls for each in result.credits) + sum(each.pauses_sent for each in result.memory)
    # Receivers' credits hardly let senders exceed the last link.
    assert waited > 0 or "receiver_credits" in transport


def test_packets_behind_a_trimmed_one_have_rod_go_back_no_further_time() -> None:
    result = run(UET | {"service": "rod"}, trimming={"classes": [3]})
    assert trimmed_packets(result) > 100
    assert result.drops == {}
    assert result.retransmissions < BYTES // 1024


def test_without_them_the_same_incast_loses_packets() -> None:
    for transport in (UET, MRC):
        result = run(transport | OPEN)
        assert result.drops["queue full"] > 1000
        assert result.retransmissions > 1000


@TRANSPORTS
@pytest.mark.parametrize("lossless", [{}, CREDITS], ids=["alone", "credits"])
def test_hosts_do_not_notice_what_links_with_retry_lose(transport: dict[str, Any], lossless: dict[str, Any]) -> None:
    result = run(transport, fabric=FABRIC | {"queue_capacity": "8MiB"}, **RETRY, **lossless)
    assert sum(each.lost_packets for each in result.link_retries) > 5
    assert result.retransmissions == 0
    assert result.drops == {}
    assert result.flows[0].bytes_delivered == BYTES


def test_ports_without_credits_trim() -> None:
    """Credits between leaves and spines only, so queues to hosts may be full: trimming goes with that."""
    credits = {"credits": {"classes": [3], "buffer": "32KiB", "links": ["p0l*<->p0s*"]}}
    # Little memory is shared, and trimmed packets have their own.
    buffer = {"capacity": "1MiB", "alpha": {3: 0.25}, "reserved": {6: "16KiB"}}
    result = run(UET, trimming={"classes": [3]}, buffer=buffer, **credits)
    assert trimmed_packets(result) > 0
    assert result.drops == {}
    assert result.retransmissions >= trimmed_packets(result)
    assert result.flows[0].bytes_delivered == BYTES


@pytest.mark.parametrize("transport", ["uet", "mrc"])
def test_real_interfaces_know_the_classes_of_their_code_points(transport: str) -> None:
    """Under the real clock a port tells by the DSCP what a frame has taken of its credits."""
    section = TransportSection(protocol=transport)
    options = FabricOptions(clock="real", credits=CreditsSection(classes=[3]), transport=section)
    [known] = classes_of_dscps(topologies.leaf_spine(planes=1), options)
    assert dict(section.kind.code_points).items() <= known.items()
    assert {known[4], known[8], known[12], known[46]} == {3, 6}


@pytest.mark.parametrize("kind", ["srv6", "structured_ev"])
def test_paths_that_evs_name_may_be_lossless(kind: str) -> None:
    """Over two planes: no EV is blamed for packets that wait for credit, or for a replay."""
    keys = {"routing": {"kind": kind}, "ip_version": 6, "fabric": FABRIC | {"planes": 2}}
    result = run(MRC | OPEN, **keys, **CREDITS, **RETRY)
    assert sum(each.stalls for each in result.credits) > 0
    assert result.retransmissions == 0
    assert result.drops == {}
    assert not any(each.timeouts or each.failures for each in result.path_signals)
