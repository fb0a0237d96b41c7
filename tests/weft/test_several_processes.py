"""Runs of several processes write the same files as one does. Threads stand for processes here; see test_mpi.py."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import refused
from tests.weft.process_threads import in_processes
from weft.clocks.virtual.processes import Alone, Processes
from weft.errors import CheckFailedError, EnvironmentLacksError, WeftError
from weft.paths import ROOT
from weft.run.fabric import Fabric
from weft.run.runner import run_scenario
from weft.run.several_processes import require_served_by
from weft.run.spec import run_spec
from weft.scenario import load_scenario

FABRIC = "fabric: {leaves: 3, spines: 2, hosts_per_leaf: 2, planes: 2, host_rate: 100Gb/s}"
SCENARIOS = {
    # Data, drawn loss and damage, recordings, a slow controller, reductions in switches.
    "recorded": f"""
{FABRIC}
faults: {{loss: 0.0005, bit_error_rate: 1.0e-7}}
control: {{latency: 10us}}
observe: {{queues: all, interval: 5us, flows: true, drops: true, int: [h1->h0], timelines: true}}
traffic:
  - {{collective: allreduce, sizes: [16K, 70K], data: random}}
  - {{incast: h0, bytes_per_sender: 100K}}
  - {{workload: {{flow_sizes: websearch, load: 0.2, duration: 50us}}}}
""",
    # Ranks that share hosts, operations in streams, lengths; kinds of traffic in classes, counted.
    "training": """
fabric: {leaves: 2, spines: 2, hosts_per_leaf: 4, planes: 1, host_rate: 400Gb/s, ranks_per_host: 2}
workers: 2
scheduling: {classes: [5]}
observe: {loads: true}
traffic:
  - model: {layers: 2, hidden: 256, heads: 4, kv_heads: 4, feed_forward: 512, vocabulary: 1000, sequence: 128}
    parallel: {tensor: 2, pipeline: 2, data: 2}
    micro_batches: 2
    accelerator: A100
    classes: {pipeline: 5}
""",
    # A link fails, with packets on it and in queues, and comes back; a host's port fails, and a spare takes its rank.
    "events": """
fabric: {leaves: 3, spines: 2, hosts_per_leaf: 2, planes: 1, host_rate: 100Gb/s, spares: 1}
control: {latency: 5us, detection: 2us}
events:
  - {at: 10us, link: p0l0<->p0s1, state: down}
  - {at: 90us, link: p0l0<->p0s1, state: up}
  - {at: 40us, link: p0l1<->p0s0, state: slow, rate: 10Gb/s}
  - {at: 60us, link: h1<->p0l0, state: down}
observe: {drops: true}
traffic: [{collective: allreduce, sizes: [1M], algorithms: [ring], data: random}]
""",
    # Counters of switches and hosts are compared; a link is cordoned, and a spare takes a host's rank.
    "watched": """
fabric: {leaves: 2, spines: 2, hosts_per_leaf: 3, planes: 1, host_rate: 100Gb/s, spares: 1}
faults: {links: [{link: h1->p0l0, loss: 0.02}, {link: p0l0->p0s1, loss: 0.02}]}
control: {latency: 1us}
controller: {link_watch: {loss: 0.002, least_packets: 200}, interval: 10us}
transport: {path: spray, retransmission: selective-repeat}
traffic: [{collective: allreduce, sizes: [256K], algorithms: [ring], repetitions: 2}]
""",
    # A NIC pauses its switch, and a watchdog of another process's partition ends that.
    "storm": """
fabric: {leaves: 2, spines: 1, hosts_per_leaf: 3, planes: 1, host_rate: 100Gb/s, delay: 1us}
transport: {parameters: {window: 1MiB}}
pfc: {classes: [3], xoff: 50KB, watchdog: {detection_time: 100us, restoration_time: 50us}}
events: [{host: h5, state: storming, at: 10us, until: 800us}]
traffic: [{permutation: 1M, data: lengths}]
""",
    # Frames wait to be sent again on links that then fail.
    "retry": """
fabric: {leaves: 2, spines: 2, hosts_per_leaf: 2, planes: 1, host_rate: 100Gb/s, delay: 1us}
faults: {loss: 0.02}
link_retry: {links: ['*<->*']}
control: {latency: 5us, detection: 2us}
events:
  - {at: 20us, link: p0l0<->p0s1, state: down}
  - {at: 20us, link: p0l1<->p0s1, state: down}
  - {at: 90us, link: p0l0<->p0s1, state: up}
traffic: [{permutation: 1M, data: lengths}]
""",
    # Links of one far end or another.
    "circuits": """
fabric: {leaves: 8, matchings: {spread: [0, 1, 2], other: [3, 4, 5]}, planes: 1, hosts_per_leaf: 1, host_rate: 100Gb/s}
circuits: {drain: false, dark_time: 20us, schedule: [{at: 300us, configuration: other}]}
control: {latency: 5us}
traffic:
  - {collective: allreduce, sizes: [1M], algorithms: [ring]}
  - {circuits: spread}
  - {collective: allreduce, sizes: [16K], algorithms: [ring]}
""",
    # Frames of flow control cross partitions in both directions.
    "lossless": """
fabric: {leaves: 2, spines: 1, hosts_per_leaf: 3, planes: 1, host_rate: 100Gb/s}
buffer: {capacity: 1MiB}
pfc: {}
switching: {mode: cut-through, latency: 300ns}
traffic: [{incast: h0, bytes_per_sender: 300K}]
""",
    # Programs on hosts' own IP stacks.
    "plain": f"""
fabric: {{leaves: 2, spines: 1, hosts_per_leaf: 2, planes: 1, host_rate: 10Gb/s}}
traffic:
  - {{ping: all, count: 2}}
  - {{udp: [h0->h3], rate: 5Gb/s, duration: 50us}}
  - script: {{h0: '{ROOT}/examples/plain_hosts.py:Asker', h3: '{ROOT}/examples/plain_hosts.py:Answerer'}}
    duration: 50us
""",
    # Commands, READs and devices; requests at random times; workers that push and pull.
    "services": """
fabric: {leaves: 3, spines: 2, hosts_per_leaf: 2, planes: 1, host_rate: 100Gb/s}
observe: {loads: true}
traffic:
  - {storage: [5], queue_depth: 4, block: 4KiB, access: {blocks: 12, order: random}}
  - storage: [4, 5]
    host_copy: {bandwidth: 200Gb/s, latency: 5us}
    loading: {steps: 2, samples: 2, sample: 20KiB, compute: 20us, prefetch: 1}
  - {remote_memory: [5], clients: [0, 3], size: 1KiB, access_latency: 150ns, reads: 40, load: 0.5}
  - parameter_server: 1
    workers: 5
    mlp: {hidden: 16, batch: 8, learning_rate: 0.5}
    steps: 2
    compute: 20us
    jitter: 0.2
    mode: asynchronous
    staleness: 1
  - inference:
      model: {layers: 2, hidden: 256, heads: 4, kv_heads: 4, feed_forward: 512, vocabulary: 1000, sequence: 512}
      requests: {rate: 20000, count: 12, prompt: {median: 64, sigma: 0.8, most: 512}, output: {median: 4, sigma: 0.6}}
      prefill: {instances: 2, tensor: 1, accelerator: A100}
      decode: {instances: 1, tensor: 1, accelerator: A100}
""",
}


def files_of(scenario: Path, directory: Path, processes: Processes | None = None) -> dict[str, bytes]:
    """Run a scenario and return the files it makes, but for the one with the machine's times."""
    spec = run_spec(load_scenario(scenario))
    result = run_scenario(spec, processes=processes or Alone())
    directory = directory / f"of-{processes.number if processes else 'one'}"
    directory.mkdir()
    result.save(directory)
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name != "wall_times.json"}


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "scenario.yaml"
    path.write_text(f"name: several\nclock: virtual\nseed: 3\n{text}", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("recorded", 2),
        ("training", 3),
        ("events", 2),
        ("watched", 2),
        ("storm", 2),
        ("retry", 2),
        ("circuits", 3),
        ("lossless", 4),
        ("services", 2),
        ("plain", 2),
    ],
)
def test_every_process_has_the_results_of_one(tmp_path, name, count):
    scenario = written(tmp_path, SCENARIOS[name])
    alone = files_of(scenario, tmp_path)
    for files in in_processes(count, lambda process: files_of(scenario, tmp_path, process)):
        assert files == alone


def test_a_run_that_fails_fails_in_all_processes(tmp_path):
    scenario = written(tmp_path, f"{FABRIC}\nfaults: {{loss: 0.9}}\ntraffic: [{{incast: h0, bytes_per_sender: 1M}}]")
    with pytest.raises(CheckFailedError) as alone:
        run_scenario(run_spec(load_scenario(scenario)))

    def failure(processes: Processes) -> str:
        with pytest.raises(CheckFailedError) as found:
            run_scenario(run_spec(load_scenario(scenario)), processes=processes)
        return str(found.value)

    assert in_processes(2, failure) == [str(alone.value)] * 2


def test_an_error_of_one_process_ends_all_before_the_fabric_is_closed(tmp_path):
    spec = run_spec(load_scenario(written(tmp_path, f"{FABRIC}\ntraffic: [{{incast: h0, bytes_per_sender: 1M}}]")))

    def one(processes: Processes) -> None:
        with Fabric(spec, processes=processes) as fabric:
            if processes.number == 1:
                raise CheckFailedError("enough")
            fabric.summary()

    def failure(processes: Processes) -> str:
        with pytest.raises(CheckFailedError) as found:
            one(processes)
        return str(found.value)

    assert in_processes(3, failure) == ["enough"] * 3


class Two:
    """Stands for two processes, the other of which differs as it says."""

    number, count = 0, 2

    def __init__(self, **different: str) -> None:
        self.different = different

    def of(self, owner: int, what: str, read: Any) -> Any:
        return read() if owner == 0 else {**read(), **self.different}

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        return messages

    def fail(self, error: BaseException) -> BaseException:
        return error


def test_processes_of_different_versions_are_refused(tmp_path):
    spec = run_spec(load_scenario(written(tmp_path, f"{FABRIC}\ntraffic: [{{incast: h0, bytes_per_sender: 1M}}]")))
    require_served_by(Two(), spec, has_captures=False)
    with refused(
        EnvironmentLacksError,
        valid="the same Weft, and the same files at the same places, on all machines",
        problem="and 1 (on there) differ in",
    ):
        require_served_by(Two(host="there", Weft="1", scenario="2"), spec, has_captures=False)


@pytest.mark.parametrize(
    ("text", "captures", "said"),
    [
        ("observe: {captures: [h0:0]}", False, {"place": "observe.captures", "problem": "captures"}),
        ("observe: {state_at: [1us]}", False, {"place": "observe.state_at", "problem": "state"}),
        ("observe: {state_series: [ipv4_lpm]}", False, {"place": "observe.state_series", "problem": "state"}),
        ("mtu: 1024\nfidelity: {segment: 16K}", False, {"place": "fidelity.segment", "problem": "segment"}),
        ("", True, {"place": "--pcap", "problem": "cap"}),
    ],
)
def test_what_several_processes_do_not_support_is_refused(tmp_path, text, captures, said):
    scenario = written(tmp_path, f"{FABRIC}\n{text}\ntraffic: [{{incast: h0, bytes_per_sender: 1M}}]")
    with refused(WeftError, **said):
        require_served_by(Two(), run_spec(load_scenario(scenario)), captures)


def test_several_processes_run_the_virtual_clock(tmp_path):
    spec = run_spec(load_scenario(written(tmp_path, f"{FABRIC}\ntraffic: [{{incast: h0, bytes_per_sender: 1M}}]")))
    with refused(EnvironmentLacksError, problem="--clock virtual"):
        require_served_by(Two(), replace(spec, options=spec.options.changed(clock="real")), has_captures=False)
