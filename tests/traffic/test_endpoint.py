"""Two and four endpoint processes in namespaces of their own, joined by veth pairs, exact to the bit."""

import contextlib
import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

import numpy as np
import pytest
from scapy.utils import PcapReader

from weft.traffic.aggregation_format import Operation
from weft.traffic.control import EndpointGroup
from weft.traffic.data_types import DataType
from weft.traffic.endpoint_lines import configured
from weft.traffic.host_config import HostConfig, NicConfig
from weft.traffic.layers import BTH, icrc_is_valid
from weft.traffic.patterns import Flow, incast
from weft.traffic.prepared_runs import RunError
from weft.traffic.schedules import CollectiveSpec

pytestmark = pytest.mark.mininet

REPOSITORY = Path(__file__).parents[2]
RATE_BPS = 10_000_000_000
DILATION = 200.0
# Four links of 1 µs: a packet of 1,152 bytes out and an acknowledgement of 128 back, stored and forwarded.
BASE_ROUND_TRIP_PS = 4 * (2 * 1_000_000 + (1152 + 128) * 8 * 10**12 // RATE_BPS)

CONNECTION = {"plane": 0, "peer": 1, "queue_pair": 256, "remote_queue_pair": 256}
SPEC = {
    "rank_count": 2,
    "element_count": 9,
    "dtype": "int32",
    "operation": "sum",
    "plane_rates_bps": [RATE_BPS],
}


class Process:
    """An endpoint started in a namespace; the `JsonLines` that a LineEndpoint needs."""

    def __init__(self, namespace: str):
        self.popen = subprocess.Popen(
            ["ip", "netns", "exec", namespace, sys.executable, "-m", "weft.traffic.endpoint"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )

    def send(self, command):
        self.popen.stdin.write(json.dumps(command) + "\n")
        self.popen.stdin.flush()

    def read_answer(self, timeout_s, number=None):
        answer = None
        while answer is None or (number is not None and answer.get("id", number) != number):
            line = self.popen.stdout.readline()
            assert line, f"the endpoint ended with {self.popen.wait()}"
            answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self) -> int:
        self.popen.stdin.close()
        self.popen.stdout.close()
        return self.popen.wait(10)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def mac_of(rank: int, plane: int) -> str:
    return f"02:00:{plane:02x}:00:00:{rank + 1:02x}"


@contextlib.contextmanager
def two_namespaces(planes: int):
    """Two namespaces joined by a veth pair per plane; yields their names."""
    tag = uuid.uuid4().hex[:6]
    names = [f"tr{tag}{rank}" for rank in range(2)]
    try:
        for name in names:
            ip("netns", "add", name)
        for plane in range(planes):
            ends = [f"eth{plane}" for _ in names]
            ip("link", "add", ends[0], "netns", names[0], "type", "veth", "peer", ends[1], "netns", names[1])
            for rank, (name, end) in enumerate(zip(names, ends, strict=True)):
                ip("-n", name, "link", "set", end, "addrgenmode", "none")
                ip("-n", name, "link", "set", end, "address", mac_of(rank, plane), "mtu", "1500", "up")
                ip("-n", name, "address", "add", f"10.{plane}.0.{rank + 1}/24", "dev", end)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


@pytest.fixture
def pair(request):
    """EndpointGroup of two hosts over two planes, wired back to back; parameter: the IP version."""
    with two_namespaces(planes=2) as names, contextlib.ExitStack() as stack:
        epoch_ns = time.monotonic_ns()
        hosts = [
            HostConfig(
                name=f"h{rank}",
                rank=rank,
                epoch_ns=epoch_ns,
                dilation=DILATION,
                nics=tuple(
                    NicConfig(
                        interface=f"eth{plane}",
                        mac=mac_of(rank, plane),
                        ipv4=f"10.{plane}.0.{rank + 1}/24",
                        ipv6=f"fd00:{plane}::{rank + 1}/64",
                        gateway_mac=mac_of(1 - rank, plane),
                        rate_bps=RATE_BPS,
                        base_round_trip_ps=BASE_ROUND_TRIP_PS,
                    )
                    for plane in range(2)
                ),
                seed=1,
                wall_clock_floor_ns=500_000_000,
            )
            for rank in range(2)
        ]
        processes = [Process(name) for name in names]
        endpoints = configured(processes, hosts)
        group = EndpointGroup(endpoints, hosts, ip_version=getattr(request, "param", 4))
        group.processes = processes
        stack.callback(lambda: [process.close() for process in processes])
        yield group


def write_inputs(folder: Path, dtype: str, elements: int) -> tuple[list[Path], list[np.ndarray]]:
    generator = np.random.default_rng(1)
    inputs = [(generator.standard_normal(elements) * 1e6).astype(dtype) for _ in range(2)]
    paths = [folder / f"in{rank}" for rank in range(2)]
    for path, array in zip(paths, inputs, strict=True):
        array.tofile(path)
    return paths, inputs


@pytest.mark.parametrize(("pair", "dtype"), [(4, "int32"), (4, "float32"), (6, "int32")], indirect=["pair"])
def test_ring_over_two_planes_is_exact(pair, tmp_path, dtype):
    elements = 50_001
    paths, inputs = write_inputs(tmp_path, dtype, elements)
    results = [tmp_path / f"out{rank}" for rank in range(2)]
    spec = CollectiveSpec(2, elements, DataType(dtype), Operation.SUM, (RATE_BPS, RATE_BPS))
    for _ in range(2):
        outcome = pair.run(pair.prepare_collective(spec, "ring", paths, results))
        assert outcome.duration_ps > elements * 4 * 8 / (2 * RATE_BPS) * 1e12
        for path in results:
            np.testing.assert_array_equal(np.fromfile(path, dtype), inputs[0] + inputs[1])
    np.testing.assert_array_equal(np.fromfile(paths[0], dtype), inputs[0])
    for stats in pair.stats():
        assert stats["failure"] is None
        assert len(stats["connections"]) == 2
        assert stats["totals"]["data_bytes_received"] >= 2 * elements * 4
        assert stats["lateness"]["count"] > 0
        # The peers echo a stack no switch has stamped.
        assert [each["telemetry"]["hops"] for each in stats["connections"]] == [[], []]


def test_flows_run_beside_a_collective_and_captures_hold_valid_packets(pair, tmp_path):
    paths, inputs = write_inputs(tmp_path, "int32", 5000)
    pair.capture(0, 0, tmp_path / "h0.pcap")
    traffic = pair.prepare_traffic([*incast(0, [1], 100_000), Flow(0, 1, 3000, plane=1)])
    spec = CollectiveSpec(2, 5000, DataType.INT32, Operation.MAX, (RATE_BPS, RATE_BPS))
    pair.start(traffic)
    pair.run(pair.prepare_collective(spec, "ring", paths))
    pair.wait(traffic)
    pair.release(traffic)
    pair.capture(0, 0, None)
    for path in paths:
        np.testing.assert_array_equal(np.fromfile(path, "int32"), np.maximum(*inputs))
    with PcapReader(str(tmp_path / "h0.pcap")) as reader:
        packets = list(reader)
    assert len(packets) > 100
    assert all(BTH in packet and icrc_is_valid(bytes(packet)) for packet in packets)


def test_the_kernel_sends_no_icmp_and_nothing_is_retransmitted(pair, tmp_path):
    paths, _ = write_inputs(tmp_path, "int32", 2000)
    spec = CollectiveSpec(2, 2000, DataType.INT32, Operation.SUM, (RATE_BPS, RATE_BPS))
    pair.run(pair.prepare_collective(spec, "ring", paths))
    for stats in pair.stats():
        assert stats["totals"]["retransmitted_packets"] == 0
        for plane in stats["planes"]:
            assert plane["nic"]["not_roce_packets"] == 0
            assert not any(plane["nic"]["dropped"].values())


def test_a_rank_that_never_starts_is_reported_and_the_others_go_on(pair, tmp_path):
    paths, inputs = write_inputs(tmp_path, "int32", 100)
    spec = CollectiveSpec(2, 100, DataType.INT32, Operation.SUM, (RATE_BPS, RATE_BPS))
    run = pair.prepare_collective(spec, "ring", paths)
    with pytest.raises(RunError, match="h0: prepared"):
        pair.wait(run, timeout_s=0.0)
    pair.release(run)
    pair.run(pair.prepare_collective(spec, "ring", paths))
    np.testing.assert_array_equal(np.fromfile(paths[0], "int32"), inputs[0] + inputs[1])


def test_after_a_run_is_cut_off_the_next_one_is_exact(pair, tmp_path):
    paths, _ = write_inputs(tmp_path, "int32", 1_000_000)
    spec = CollectiveSpec(2, 1_000_000, DataType.INT32, Operation.SUM, (RATE_BPS, RATE_BPS))
    cut_off = pair.prepare_collective(spec, "ring", paths)
    with pytest.raises(RunError, match="h1: running"):
        pair.run(cut_off, timeout_s=0.1)
    for seed in range(2):
        paths, inputs = write_inputs(tmp_path, "int32", 3000 + seed)
        spec = CollectiveSpec(2, 3000 + seed, DataType.INT32, Operation.SUM, (RATE_BPS, RATE_BPS))
        pair.run(pair.prepare_collective(spec, "ring", paths))
        np.testing.assert_array_equal(np.fromfile(paths[1], "int32"), inputs[0] + inputs[1])


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ({"command": "fly"}, "unknown command 'fly'.*collective"),
        ({}, "field 'command' is missing"),
        ({"command": "wait", "run": 77}, "no run 77"),
        (
            {"command": "collective", "run": 1, "algorithm": "ring", "spec": {}},
            "'spec.rank_count' is missing",
        ),
        (
            {"command": "connect", "connections": [CONNECTION, CONNECTION | {"queue_pair": -1}]},
            r"'connections\[1\]\.queue_pair' is -1 \(valid: 0 to 16777215\)",
        ),
        ({"command": "connect", "connections": [CONNECTION | {"plane": 9}]}, r"plane 9 \(valid: 0 to 1\)"),
        ({"command": "connect", "connections": [CONNECTION]}, "to rank 1 has no destination_ip"),
        ({"command": "connect", "connections": 3}, "'connections' is 3"),
        ({"command": "pcap", "plane": 0, "path": "/nonexistent/x"}, "/nonexistent/x"),
        ({"command": "join", "jobs": [{"plane": 0, "job_id": -1}]}, "field"),
        (
            {"command": "collective", "run": 1, "algorithm": "ring", "spec": SPEC | {"dtype": "int64"}},
            r"'spec\.dtype' is 'int64' \(valid: float32, float16, bfloat16, int32, int16, int8\)",
        ),
        (
            {"command": "collective", "run": 1, "algorithm": "tram", "spec": SPEC},
            r"tram.*\(valid: .*ring",
        ),
    ],
)
def test_bad_commands_are_answered_and_change_nothing(pair, command, message):
    process = pair.processes[0]
    process.send(command)
    with pytest.raises(RuntimeError, match=message):
        process.read_answer(5)
    assert pair.stats()[0]["connections"] == []


def test_an_endpoint_is_small_and_leaves_when_its_input_ends(pair):
    process = pair.processes[0]
    children = Path(f"/proc/{process.popen.pid}/status").read_text()
    resident_kib = int(children.split("VmRSS:")[1].split()[0])
    assert resident_kib < 60 * 1024
    assert process.close() == 0
    assert not os.path.exists(f"/proc/{process.popen.pid}")
    process.close = lambda: 0


def test_a_bad_configuration_is_refused_by_name():
    with two_namespaces(planes=1) as names:
        process = Process(names[0])
        process.send({"name": "h0", "rank": 0, "epoch_ns": 0, "nics": [{"interface": "eth9"}]})
        with pytest.raises(RuntimeError, match=r"configuration: field 'nics\[0\]\.mac' is missing"):
            process.read_answer(5)
        assert process.close() == 3
