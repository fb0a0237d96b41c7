"""Receivers that clear a collective's messages: results, queues of an incast, waits in results, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.inet import IP, UDP
from scapy.utils import rdpcap

from weft import BadInputError, ClearToSend, Fabric, topologies
from weft.results.limits import Evidence, limits_of
from weft.results.run_result import RunResult
from weft.run.clear_to_send import cost_of_first_clearance, links_with_clearances
from weft.run.collectives import CollectiveRequest
from weft.run.runner import Captures, run_scenario
from weft.run.spec import run_spec
from weft.scenario import parse_scenario
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.costs import Links, Wire
from weft.traffic.layers import BTH, RETH
from weft.wire.code_points import DSCP_CONTROL, DSCP_TRIMMABLE

HOSTS = {"planes": 2, "leaves": 2, "spines": 1, "hosts_per_leaf": 2}
ONE_HOST = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2, "ranks_per_host": 4}
WIDE = {"planes": 1, "leaves": 4, "spines": 4, "hosts_per_leaf": 4, "host_rate": "100Gb/s"}
TIGHTEST = {"window": 1, "chunk": 256}
UNREACTING = {"congestion_control": "fixed-window"}


def run(item: dict[str, Any], fabric: dict[str, Any] = HOSTS, **more: Any) -> RunResult:
    tree = {"clock": "virtual", "fabric": fabric, "traffic": [{"algorithms": ["ring"], **item}], **more}
    return run_scenario(parse_scenario(tree, units_required=True))


def suited(collective: str) -> list[str]:
    names = [each.name for each in COLLECTIVE_KINDS[collective].algorithms if not each.in_network]
    return [name for name in names if not name.startswith(("hierarchical", "nvls"))]


@pytest.mark.parametrize("settings", [{}, TIGHTEST, {"window": 3, "chunk": 1000}], ids=["default", "tight", "odd"])
@pytest.mark.parametrize("collective", [name for name in COLLECTIVE_KINDS if name != "barrier"])
def test_results_are_right_whatever_is_cleared(collective: str, settings: dict[str, int]) -> None:
    """With one message at a time, nothing waits for ever, and parts of a transfer land in their places."""
    item = {"collective": collective, "algorithms": suited(collective), "sizes": [20_036], "dtype": "int8"}
    for found in run(item | {"clear_to_send": settings, "root": 3}).collectives:
        assert found.ok
        assert found.verified
        assert found.clear_to_send is not None
        assert found.clear_to_send.messages > 0


@pytest.mark.parametrize("collective", ["allreduce", "alltoall"])
@pytest.mark.parametrize("fabric", [ONE_HOST, {**ONE_HOST, "leaves": 2, "spines": 2}], ids=["leaf", "spines"])
def test_ranks_of_a_host_are_not_cleared_but_those_of_others_are(collective: str, fabric: dict[str, Any]) -> None:
    names = [each.name for each in COLLECTIVE_KINDS[collective].algorithms if not each.in_network]
    algorithms = [name for name in names if not name.startswith("nvls")]
    item = {"collective": collective, "algorithms": algorithms, "sizes": [32_768], "clear_to_send": TIGHTEST}
    assert all(found.ok for found in run(item, fabric).collectives)


@pytest.mark.parametrize("protocol", ["ll", "ll128", "simple", "auto"])
def test_messages_in_a_protocol_are_cleared_too(protocol: str) -> None:
    item = {"collective": "allreduce", "sizes": [100_000], "protocol": protocol, "clear_to_send": TIGHTEST}
    [found] = run(item).collectives
    assert found.ok
    assert found.clear_to_send is not None
    assert found.clear_to_send.held_messages > 0


@pytest.mark.parametrize(("retransmission", "path"), [("go-back-n", "flow"), ("selective-repeat", "spray")])
def test_a_lost_clearance_is_repeated(retransmission: str, path: str) -> None:
    item = {"collective": "alltoall", "algorithms": ["direct"], "sizes": [65_536], "clear_to_send": TIGHTEST}
    transport = {"retransmission": retransmission, "path": path}
    result = run(item, transport=transport, faults={"loss": 0.01})
    assert all(each.ok and each.retransmissions > 0 for each in result.collectives)


def test_ranks_of_a_group_clear_theirs() -> None:
    item = {"collective": "allreduce", "sizes": [100_000], "ranks": [3, 0, 2], "clear_to_send": {"window": 2}}
    [found] = run(item).collectives
    assert found.ok
    assert found.clear_to_send is not None
    assert found.clear_to_send.messages > 0


def test_repetitions_on_kept_connections_begin_anew() -> None:
    item = {"collective": "alltoall", "algorithms": ["direct"], "sizes": [65_536], "clear_to_send": TIGHTEST}
    more = {"repetitions": 3, "warmup": 1}
    [found] = run(item | more, transport={"connections": "kept"}).collectives
    [once] = run(item).collectives
    assert found.ok
    assert found.clear_to_send is not None
    assert once.clear_to_send is not None
    assert found.clear_to_send.messages == 3 * once.clear_to_send.messages


def test_a_collective_goes_on_when_a_plane_is_lost_and_comes_back() -> None:
    """Parts of a transfer keep their order: data would be wrong if the last one overtook another."""
    item = {"collective": "allreduce", "sizes": [4_000_000], "clear_to_send": {"window": 2, "chunk": 4096}}
    events = [{"at": "50us", "plane": 1, "state": "down"}, {"at": "400us", "plane": 1, "state": "up"}]
    fabric = {**HOSTS, "planes": 3}
    result = run(item, fabric, events=events)
    [found] = result.collectives
    assert found.ok
    assert found.clear_to_send is not None


def incast(transport: str, clear_to_send: dict[str, int] | None = None) -> tuple[int, int]:
    """Return the longest queue and the marks of an all-to-all of 16 ranks: each receives from all others at once."""
    item: dict[str, Any] = {"collective": "alltoall", "algorithms": ["direct"], "sizes": ["4MiB"], "data": "lengths"}
    if clear_to_send is not None:
        item["clear_to_send"] = clear_to_send
    result = run(item, WIDE, hash_seed=1, transport={"congestion_control": transport})
    [plane] = result.planes
    return plane.largest_queue_bytes, plane.ecn_marked_packets


def test_queues_of_an_incast_are_as_short_as_what_is_cleared() -> None:
    """Compared with DCQCN, and with a transport that does not react and is not held."""
    cleared = incast("fixed-window", {"window": 1, "chunk": 4096})
    dcqcn, free = incast("dcqcn"), incast("fixed-window")
    # All 15 senders may have one message of four packets on the way to a receiver.
    assert cleared[0] < 15 * 4 * 1200
    assert cleared[0] < dcqcn[0] / 4
    assert dcqcn[0] <= 1.05 * free[0]
    assert cleared[1] == 0 < dcqcn[1]


def test_results_say_how_long_senders_waited_and_why_names_it() -> None:
    item = {"collective": "allreduce", "sizes": ["256KiB"], "clear_to_send": TIGHTEST}
    result = run(item)
    [found] = result.collectives
    assert found.clear_to_send is not None
    assert 0 < found.clear_to_send.waiting_share <= 1
    assert 0 < found.clear_to_send.mean_wait_ps < found.time_ps
    saved = json.loads(json.dumps(result.as_dict()))["collectives"][0]["clear_to_send"]
    assert (saved["window"], saved["chunk_bytes"]) == (1, 256)
    limits = {each.kind: each for each in limits_of(evidence_of(result))}
    assert "window 1" in limits["clearance"].sentence
    plain = run({"collective": "allreduce", "sizes": ["256KiB"]})
    assert "clear_to_send" not in plain.as_dict()["collectives"][0]
    assert "clearance" not in {each.kind for each in limits_of(evidence_of(plain))}
    assert plain.collectives[0].time_ps < found.time_ps


def evidence_of(result: RunResult) -> Evidence:
    fabric = topologies.leaf_spine(**HOSTS)
    return Evidence(result, fabric, result.observations.tables)


def test_a_wide_window_costs_one_way_at_the_start() -> None:
    """The first message waits for a clearance; after that there is always another."""
    fabric = {"planes": 1, "leaves": 1, "spines": 0, "hosts_per_leaf": 2, "host_rate": "100Gb/s"}
    item = {"collective": "alltoall", "algorithms": ["direct"], "sizes": ["4MiB"], "data": "lengths"}
    [plain] = run(item, fabric, transport=UNREACTING).collectives
    [cleared] = run(item | {"clear_to_send": {}}, fabric, transport=UNREACTING).collectives
    assert plain.time_ps < cleared.time_ps < plain.time_ps + 5_000_000


def test_costs_know_the_window_and_the_first_clearance() -> None:
    wire = Wire(1000.0, 2.0)
    links = Links(wire, wire, wire)
    settings = ClearToSend(window=1, chunk=1000)
    assert links_with_clearances(links, None) == links
    # A message of 1,000 bytes takes 3,000 ps, and its clearance 1,000.
    assert links_with_clearances(links, settings).between.ps_per_byte == 4.0
    assert links_with_clearances(links, ClearToSend(window=8, chunk=1000)).between.ps_per_byte == 2.0
    assert cost_of_first_clearance(links, settings).total_ps == 1000.0
    assert cost_of_first_clearance(links, None).total_ps == 0


@pytest.mark.parametrize(
    ("item", "place", "problem"),
    [
        ({"algorithms": ["in-network"]}, "traffic[0].clear_to_send", "aggregation packets"),
        ({"algorithms": ["auto"]}, "traffic[0].clear_to_send", "name one"),
        ({"algorithms": None}, "traffic[0].algorithms", "with clear_to_send"),
        ({"collective": "barrier", "algorithms": ["dissemination"], "sizes": []}, "clear_to_send", "carries no data"),
        ({"clear_to_send": {"window": 0}}, "clear_to_send.window", "1 to 1024"),
        ({"clear_to_send": {"chunk": 255}}, "clear_to_send.chunk", "255"),
        ({"clear_to_send": {"slots": 8}}, "clear_to_send.slots", "window"),
    ],
)
def test_what_cannot_be_cleared_is_refused(item: dict[str, Any], place: str, problem: str) -> None:
    tree = {"collective": "allreduce", "sizes": [4096], "clear_to_send": {}, **item}
    with pytest.raises(BadInputError) as caught:
        run(tree)
    assert place in str(caught.value)
    assert problem in str(caught.value)


@pytest.mark.parametrize("protocol", ["mrc", "uet"])
@pytest.mark.parametrize("settings", [{}, TIGHTEST, {"window": 3, "chunk": 1000}], ids=["default", "tight", "odd"])
@pytest.mark.parametrize("more", [{}, {"faults": {"loss": 0.01}}], ids=["clean", "lossy"])
def test_other_transports_are_cleared_too(protocol: str, settings: dict[str, int], more: dict[str, Any]) -> None:
    """Their packets arrive in any order, but immediates are reported in order of posting."""
    transport = {"protocol": protocol}
    for collective in ("allreduce", "alltoall"):
        item = {"collective": collective, "algorithms": suited(collective), "sizes": [20_036], "dtype": "int8"}
        for found in run(item | {"clear_to_send": settings}, transport=transport, int=False, **more).collectives:
            assert found.ok
            assert found.clear_to_send is not None
            assert found.clear_to_send.messages > 0


def test_clearances_of_uet_need_no_credit() -> None:
    item = {"collective": "alltoall", "algorithms": ["direct"], "sizes": [65_536], "clear_to_send": TIGHTEST}
    transport = {"protocol": "uet", "receiver_credits": True}
    [found] = run(item, transport=transport, int=False).collectives
    assert found.ok
    assert found.clear_to_send is not None
    assert found.clear_to_send.held_messages > 0


@pytest.mark.parametrize("protocol", ["mrc", "uet"])
def test_clearances_of_other_transports_travel_ahead_of_data(protocol: str, tmp_path: Path) -> None:
    item = {"collective": "alltoall", "algorithms": ["direct"], "sizes": [65_536], "clear_to_send": TIGHTEST}
    tree = {"clock": "virtual", "fabric": HOSTS, "traffic": [item], "observe": {"captures": ["h0:0"]}}
    tree |= {"transport": {"protocol": protocol}, "int": False}
    run_scenario(run_spec(parse_scenario(tree)), directory=tmp_path, captures=Captures(tmp_path))
    [file] = tmp_path.rglob("*.pcapng")
    frames = [frame for frame in rdpcap(str(file)) if UDP in frame]
    # Of all packets only those with data are longer than their headers; those of control are not marked.
    code_points = {(frame[IP].tos >> 2, frame[IP].tos & 3) for frame in frames}
    assert code_points == {(DSCP_TRIMMABLE, 2), (DSCP_CONTROL, 0)}
    assert {frame[IP].tos >> 2 for frame in frames if len(frame) > 256} == {DSCP_TRIMMABLE}


def test_python_checks_the_settings() -> None:
    fabric = topologies.leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2)
    with pytest.raises(ValueError, match="window"):
        ClearToSend(window=0, chunk=1024)
    with Fabric(fabric, clock="virtual") as made:
        settings = ClearToSend(window=2, chunk=1024)
        done = made.run(CollectiveRequest("allreduce", 65536, "ring", clear_to_send=settings))
        assert done.result.clear_to_send is not None
        assert done.result.clear_to_send.chunk_bytes == 1024
        with pytest.raises(BadInputError, match=r"a weft\.ClearToSend"):
            made.run(CollectiveRequest("allreduce", 65536, "ring", clear_to_send=True))  # type: ignore[arg-type]


def test_clearances_travel_ahead_of_data_and_are_not_marked(tmp_path: Path) -> None:
    item = {"collective": "alltoall", "algorithms": ["direct"], "sizes": [65_536], "clear_to_send": TIGHTEST}
    tree = {"clock": "virtual", "fabric": HOSTS, "traffic": [item], "observe": {"captures": ["h0:0"]}}
    run_scenario(run_spec(parse_scenario(tree)), directory=tmp_path, captures=Captures(tmp_path))
    [file] = tmp_path.rglob("*.pcapng")
    frames = [frame for frame in rdpcap(str(file)) if BTH in frame]
    clearances = [frame for frame in frames if RETH in frame and frame[RETH].dma_length == 0]
    assert clearances
    assert {frame[IP].tos for frame in clearances} == {48 << 2}
    assert {frame[IP].tos >> 2 for frame in frames if RETH in frame and frame[RETH].dma_length} == {26}
