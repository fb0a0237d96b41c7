"""What is exported of hosts and of INT, against what runs have recorded; and the socket by which hosts say it."""

from __future__ import annotations

import itertools
import json
import re
import selectors
import shutil
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from metrics.exposed import hosts_of, parsed
from numpy.typing import NDArray

from weft.clocks.real.host_metrics import read_host_metrics
from weft.engine import _core
from weft.metrics import families_of, rendered
from weft.metrics.hosts import HostFamilies
from weft.recording.tables import Names
from weft.run.fabric import Fabric
from weft.topologies import leaf_spine
from weft.traffic.answering_socket import short_name
from weft.traffic.host_metrics import HostMetrics, MetricsSocket, metrics_of

Found = dict[tuple[str, frozenset[tuple[str, str]]], float]
HOP = "weft_int_hop_latency_seconds"
QUEUE = "weft_int_hop_queue_bytes"


def value(found: Found, name: str, **labels: object) -> float:
    return found[name, frozenset((key.rstrip("_"), str(each)) for key, each in labels.items())]


@pytest.fixture(scope="module")
def storm() -> Iterator[Fabric]:
    """A fabric whose hosts have counted hops, and recorded every INT stack, of an incast over two leaves."""
    topology = leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=3)
    with Fabric(
        topology,
        clock="virtual",
        pfc={"classes": [3], "xoff": "16KiB"},
        buffer={"capacity": "1MiB"},
        transport={"congestion_control": "fixed-window"},
        observe={"int": "all"},
    ) as fabric:
        for host in hosts_of(fabric).values():
            host.count_hops()
        fabric.incast("h0", 128 * 1024)
        yield fabric


@pytest.fixture(scope="module")
def answers(storm: Fabric) -> dict[str, HostMetrics]:
    # As they come from a process.
    metrics = {name: metrics_of(host) for name, host in hosts_of(storm).items()}
    return cast("dict[str, HostMetrics]", json.loads(json.dumps(metrics)))


def families_of_hosts(fabric: Fabric) -> HostFamilies:
    return HostFamilies(fabric.topology, 100.0, fabric.lab.controller.planned_paths, has_latencies=True)


def exposed(families: HostFamilies, answers: dict[str, HostMetrics]) -> Found:
    return parsed(rendered(families.families(answers)))


def test_latencies_of_hops_are_those_of_the_stacks_recorded(storm: Fabric, answers: dict[str, HostMetrics]) -> None:
    found = exposed(families_of_hosts(storm), answers)
    table = storm.observations().tables["int"]
    before: dict[tuple[int, ...], int] = {}
    latencies_ns, queues = Counter[int](), Counter[int]()
    counts, slower = Counter[int](), Counter[int]()
    last = {}
    names = ("hop", "time_ps", "psn", "timestamp_ns", "queue_bytes")
    sources = cast("Names", table["source"]).codes
    columns = (cast("NDArray[np.int64]", table[name]) for name in names)
    for source, hop, time_ps, psn, stamp_ns, queue_bytes in zip(sources, *columns, strict=True):
        key = int(source), int(time_ps), int(psn)
        if hop:
            latency_ns = (int(stamp_ns) - before[key]) % 2**24
            latencies_ns[int(hop)] += latency_ns
            slower[int(hop)] += latency_ns > 10_000
        before[key] = int(stamp_ns)
        queues[int(hop)] += int(queue_bytes)
        counts[int(hop)] += 1
        last[key] = int(hop), int(queue_bytes)
    # Three hops lead from the other leaf: the second is a spine, the third the leaf with the receiver.
    of_h0 = {"switch": "p0l0", "peer": "h0"}
    spines = [{"switch": f"p0s{number}", "peer": "p0l0"} for number in range(2)]
    assert value(found, f"{HOP}_sum", **of_h0) == pytest.approx(latencies_ns[2] / 1e9)
    assert value(found, f"{HOP}_count", **of_h0) == counts[2] > 50
    assert value(found, f"{HOP}_bucket", **of_h0, le="+Inf") == counts[2]
    assert counts[2] - value(found, f"{HOP}_bucket", **of_h0, le="1e-05") == slower[2] > 0
    assert sum(value(found, f"{HOP}_count", **each) for each in spines) == counts[1]
    assert sum(value(found, f"{HOP}_sum", **each) for each in spines) == pytest.approx(latencies_ns[1] / 1e9)
    # Senders at the receiver's leaf have only that hop.
    assert value(found, f"{QUEUE}_count", **of_h0) == len(last)
    assert value(found, f"{QUEUE}_sum", **of_h0) == sum(queue for _, queue in last.values()) > 0
    assert sum(each for (name, _), each in found.items() if name == f"{QUEUE}_sum") == sum(queues.values())
    assert all(value(found, "weft_int_unplaced_stacks_total", host=host) == 0 for host in answers)


def test_counters_of_hosts_are_those_of_their_queue_pairs(storm: Fabric, answers: dict[str, HostMetrics]) -> None:
    found = exposed(families_of_hosts(storm), answers)
    stats = {each["name"]: each for each in storm.hosts.stats()}
    assert value(found, "weft_host_received_bytes_total", host="h0") == 5 * 128 * 1024
    for name, each in stats.items():
        assert value(found, "weft_host_up", host=name) == 1
        assert value(found, "weft_host_sent_packets_total", host=name) == each["totals"]["data_packets_sent"]
        mac = each["planes"][0]["mac"]
        assert mac is not None
        paused_s = mac["pfc"][3]["paused_ps"] / 1e12  # type: ignore[index]
        labels = {"host": name, "plane": 0, "class_": 3}
        assert value(found, "weft_host_paused_seconds_total", **labels) == paused_s
    paused = [each for (name, _), each in found.items() if name == "weft_host_paused_seconds_total"]
    assert sum(paused) > 0


def test_no_counter_falls_while_a_host_is_silent(storm: Fabric, answers: dict[str, HostMetrics]) -> None:
    families = families_of_hosts(storm)
    first = exposed(families, answers)
    without = {name: each for name, each in answers.items() if name != "h4"}
    second = exposed(families, without)
    assert value(second, "weft_host_up", host="h4") == 0
    changed = {key for key in first if first[key] != second[key]}
    assert changed == {("weft_host_up", frozenset({("host", "h4")}))}
    assert exposed(families_of_hosts(storm), {}) == {}


def test_stacks_of_unknown_paths_are_counted(storm: Fabric, answers: dict[str, HostMetrics]) -> None:
    strange = deepcopy(answers)
    path = next(path for path in strange["h4"]["paths"] if path["stacks"])
    path["path_id"] ^= 0xFFF
    strange["h4"]["stacks_beyond_limit"] = 7
    found = exposed(families_of_hosts(storm), strange)
    assert value(found, "weft_int_unplaced_stacks_total", host="h4") == path["stacks"] + 7
    # Time stamps of switches whose clocks do not agree are left alone.
    bmv2 = HostFamilies(storm.topology, 1.0, storm.lab.controller.planned_paths, has_latencies=False)
    names = {name for name, _ in exposed(bmv2, answers)}
    assert f"{QUEUE}_sum" in names
    assert f"{HOP}_sum" not in names


def test_promtool_finds_nothing_wrong_with_the_names(storm: Fabric, answers: dict[str, HostMetrics]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed")
    text = rendered(families_of_hosts(storm).families(answers))
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_queue_pair_counts_in_its_own_engine(storm: Fabric) -> None:
    queue_pair = hosts_of(storm)["h5"].queue_pairs()[0]
    other = _core.HopLatencies(_core.Engine())
    with pytest.raises(ValueError, match="another engine"):
        queue_pair.count_hops(other, 0, 0)


def test_who_asks_gets_the_answers_of_the_hosts_that_are_awake(tmp_path: Path, storm: Fabric) -> None:
    # A name is longer than the room that a socket's address has.
    directory = tmp_path / ("a" * 150)
    directory.mkdir()
    hosts = hosts_of(storm)
    paths = {name: directory / f"{name}.metrics" for name in ("h0", "h1", "h2", "h3")}
    awake = [MetricsSocket(paths[name], hosts[name]) for name in ("h0", "h1")]
    asleep = MetricsSocket(paths["h2"], hosts["h2"])  # and h3 is gone
    serving = threading.Thread(target=_serve, args=(awake,))
    serving.start()
    found = read_host_metrics(paths, patience_s=1.0)
    serving.join()
    assert set(found) == {"h0", "h1"}
    assert found["h0"] == json.loads(json.dumps(metrics_of(hosts["h0"])))
    # One that went away before it was served is no trouble to the host, nor is nobody at all.
    asleep.serve()
    asleep.serve()
    for each in (*awake, asleep):
        each.close()


def _serve(sockets: list[MetricsSocket]) -> None:
    with selectors.DefaultSelector() as selector:
        for each in sockets:
            selector.register(each, selectors.EVENT_READ)
        while selector.get_map():
            for key, _ in selector.select():
                cast("MetricsSocket", key.fileobj).serve()
                selector.unregister(key.fileobj)


def test_who_does_not_take_the_answer_keeps_the_host_for_a_moment_only(
    tmp_path: Path, storm: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weft.traffic.answering_socket._PATIENCE_S", 0.01)
    monkeypatch.setattr(MetricsSocket, "_answer", lambda _self, _connection: b"x" * (1 << 24))
    path = tmp_path / "h0.metrics"
    listening = MetricsSocket(path, hosts_of(storm)["h0"])
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as slow, short_name(path) as name:
        slow.connect(name)
        listening.serve()  # returns although nobody reads
    listening.close()


def test_no_counter_falls_when_a_link_goes_down_and_comes_back() -> None:
    topology = leaf_spine(planes=1, leaves=2, spines=2, hosts_per_leaf=2)
    with Fabric(topology, clock="virtual", pfc={"classes": [3]}) as fabric:
        for host in hosts_of(fabric).values():
            host.count_hops()
        families = families_of_hosts(fabric)

        def scraped() -> Found:
            stats, counters = fabric.lab.switch_stats(), fabric.lab.controller.read_counters()
            answers = {name: metrics_of(host) for name, host in hosts_of(fabric).items()}
            of_switches = families_of(topology, 1.0, stats, counters)
            return parsed(rendered([*of_switches, *families.families(answers)]))

        found = [scraped()]
        fabric.incast("h0", 64 * 1024)
        found.append(scraped())
        fabric.schedule_link("p0l1", "p0s0", "down", after_ps=5_000_000)
        fabric.schedule_link("p0l1", "p0s0", "up", after_ps=400_000_000)
        for _ in range(3):
            fabric.incast("h0", 64 * 1024)
            found.append(scraped())
    for before, after in itertools.pairwise(found):
        counters = {key for key in before if re.search(r"_(total|sum|count|bucket)$", key[0])}
        assert {key for key in counters if after.get(key, 0) < before[key]} == set()
    lost = {
        key: count
        for key, count in found[-1].items()
        if key[0].endswith(("lost_packets_total", "dropped_packets_total"))
    }
    assert sum(lost.values()) > 0
    assert value(found[-1], "weft_host_received_bytes_total", host="h0") == 4 * 3 * 64 * 1024
