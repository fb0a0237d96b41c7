"""What a run records: exact values, readable by others, the same every time."""

import csv
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scapy.layers.l2 import Ether
from scapy.utils import PcapNgReader, RawPcapNgReader

from tests.refusals import refused
from weft import Fabric, topologies
from weft.errors import BadInputError, EnvironmentLacksError
from weft.recording.observations import merged
from weft.recording.reading import read_table
from weft.recording.schema import TABLES
from weft.recording.tables import Names, row_count
from weft.run.runner import run_scenario
from weft.scenario import FaultsSection, ObserveSection, TransportSection, parse_scenario
from weft.topologies import serialisation_ps
from weft.traffic.layers.icrc import icrc_is_valid
from weft.traffic.patterns import Flow
from weft.wire.headers.int_shim import INT_SHIM

EVERYTHING = {
    "interval": "2us",
    "queues": "all",
    "flows": True,
    "int": ["h1->h0"],
    "timelines": True,
    "drops": True,
    "pauses": True,
    "captures": ["p0l0:1", "p0l1:2", "h0:0"],
}
FILES = {"queues", "flows", "int", "timeline", "drops", "pauses", "ports"}


def scenario(**keys):
    return parse_scenario(
        {
            "clock": "virtual",
            "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
            "traffic": [
                {"collective": "allreduce", "sizes": ["16KiB"]},
                {"incast": "h0", "bytes_per_sender": "64KiB"},
            ],
            "faults": {"loss": 0.002},
            "observe": EVERYTHING,
        }
        | keys
    )


def run_into(directory: Path, **keys):
    directory.mkdir()
    result = run_scenario(scenario(**keys), directory=directory)
    result.save(directory)
    return result


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = tmp_path_factory.mktemp("observed") / "run"
    return run_into(directory), directory


def two_hosts(**arguments):
    return topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1, **arguments)


def texts(column):
    return list(column.texts())


# --- values


@pytest.mark.parametrize("telemetry", [False, True])
@pytest.mark.parametrize("packets", [1, 2, 3, 40])
def test_a_flow_is_recorded_with_its_exact_times(packets, telemetry):
    """The closed form of tests/weft/test_virtual_fabric.py, at both ends of the record, is also its ideal time."""
    rate_bps, delay_ps, links = 10**11, 1_000_000, 4
    outer = 14 + 20 + 8 + 12 + 4 + (46 if telemetry else 0)
    frames = [outer + 1024] * packets
    frames[0] += 16
    frames[-1] += 4
    sent_ps = [serialisation_ps(frame, rate_bps) for frame in frames]
    data_ps = sum(sent_ps) + (links - 1) * max(sent_ps) + links * delay_ps
    expected_ps = data_ps + links * (serialisation_ps(outer + 4, rate_bps) + delay_ps)

    topology = two_hosts(host_rate_bps=rate_bps, delay_ps=delay_ps)
    observe = ObserveSection(flows=True)
    with Fabric(topology, clock="virtual", int_telemetry=telemetry, observe=observe) as fabric:
        fabric.incast("h0", packets * 1024)
        flows = fabric.observations().tables["flows"]
    assert row_count(flows) == 1
    assert texts(flows["source"]) == ["h1"]
    assert texts(flows["destination"]) == ["h0"]
    assert texts(flows["status"]) == ["success"]
    assert (flows["end_ps"] - flows["start_ps"]).tolist() == [expected_ps]
    assert flows["ideal_ps"].tolist() == [expected_ps]
    assert flows["size_bytes"].tolist() == [packets * 1024]
    assert flows["retransmitted_packets"].tolist() == [0]


@pytest.mark.parametrize("rates_gbps", [(10, 40, 25), (40, 10, 100)])
@pytest.mark.parametrize("size_bytes", [1, 1023, 1025, 4096, 70_000])
def test_ideal_times_of_unequal_links_are_what_an_idle_fabric_takes(size_bytes, rates_gbps):
    """With the slowest link inside, a short last packet's acknowledgement waits for the one before."""
    host_rate_bps, fabric_rate_bps, core_rate_bps = (10**9 * rate for rate in rates_gbps)
    transport = TransportSection(parameters={"window": "10MB"})  # one that holds nothing back
    topology = topologies.fat_tree(
        pods=2, leaves_per_pod=1, spines_per_pod=1, hosts_per_leaf=2, host_rate_bps=host_rate_bps,
        fabric_rate_bps=fabric_rate_bps, core_rate_bps=core_rate_bps, delay_ps=10_000,
    )  # fmt: skip
    for receiver in ("h1", "h3"):  # below the same leaf, and in the other pod
        with Fabric(topology, clock="virtual", transport=transport, observe=ObserveSection(flows=True)) as fabric:
            source, destination = (topology.host(name).index for name in ("h0", receiver))
            group = fabric.hosts
            group.run(group.prepare_traffic([Flow(source, destination, size_bytes, 0, 0)]))
            flows = fabric.observations().tables["flows"]
        took_ps = int(flows["end_ps"][0] - flows["start_ps"][0])
        assert took_ps == flows["ideal_ps"][0]


def test_retransmissions_stand_with_the_message_that_needed_them():
    with Fabric(
        two_hosts(), clock="virtual", faults=FaultsSection(loss=0.02), observe=ObserveSection(flows=True)
    ) as fabric:
        for _ in range(4):
            fabric.incast("h0", 65536)
        flows = fabric.observations().tables["flows"]
        total = fabric.summary().retransmissions
    assert row_count(flows) == 4
    assert int(flows["retransmitted_packets"].sum()) == total > 0


def test_what_left_a_queue_is_what_the_counters_say(run):
    result, _ = run
    tables = result.observations.tables
    queues, ports = tables["queues"], tables["ports"]
    names = np.array(texts(queues["port"]))
    for port, counted in zip(texts(ports["port"]), ports["transmitted_bytes"].tolist(), strict=True):
        mine = names == port
        last = {
            c: queues["transmitted_bytes"][mine & (queues["priority_class"] == c)][-1]
            for c in set(queues["priority_class"][mine].tolist())
        }
        assert sum(last.values()) == counted, port
    assert int(queues["queue_bytes"].max()) <= int(ports["largest_queue_bytes"].max())
    end_ps = int(queues["time_ps"].max())
    assert set((queues["time_ps"][queues["time_ps"] < end_ps] % 2_000_000).tolist()) == {0}


def test_int_is_of_the_flow_asked_for_and_sees_the_incasts_queue(run):
    result, _ = run
    table = result.observations.tables["int"]
    assert set(texts(table["source"])) == {"h1"}
    assert set(texts(table["destination"])) == {"h0"}
    # Both are below the same leaf: one hop.
    assert set(table["hop"].tolist()) == {0}
    assert set(table["rate_bps"].tolist()) == {10**10}
    assert int(table["queue_bytes"].max()) > 10_000


def test_drops_are_the_counted_ones(run):
    result, _ = run
    drops = result.observations.tables["drops"]
    reasons = texts(drops["reason"])
    assert reasons.count("link lost") == result.planes[0].injected_losses > 0
    assert set(texts(drops["place"])) <= set(texts(result.observations.tables["ports"]["port"]))


def test_steps_fill_the_time_of_their_run(run):
    result, _ = run
    steps = result.observations.tables["timeline"]
    for number, phase in enumerate(result.phases, start=1):
        mine = steps["run"] == number
        assert int(steps["start_ps"][mine].min()) == phase.start_ps
        assert int(steps["end_ps"][mine].max()) == phase.end_ps
    assert {"write", "wait", "reduce", "aggregate"} <= set(texts(steps["kind"]))
    assert (steps["start_ps"] <= steps["end_ps"]).all()


def test_a_timeline_alone_knows_its_peers():
    with Fabric(two_hosts(), clock="virtual", observe=ObserveSection(timelines=True)) as fabric:
        fabric.incast("h0", 4096)
        tables = fabric.observations().tables
    assert set(tables) == {"timeline"}
    steps = tables["timeline"]
    assert list(zip(texts(steps["host"]), texts(steps["kind"]), texts(steps["peer"]), strict=True)) == [
        ("h0", "wait", "h1"),
        ("h1", "write", "h0"),
    ]
    assert steps["size_bytes"].tolist() == [0, 4096]


# --- observing changes nothing, and repeats


def test_the_results_are_those_of_a_run_that_nobody_watches(run, tmp_path):
    watched = json.loads((run[1] / "results.json").read_text())
    run_into(tmp_path / "alone", observe={})
    alone = json.loads((tmp_path / "alone" / "results.json").read_text())
    for result in (watched, alone):
        del result["made_by"]["observe"]
    assert watched == alone
    assert {path.name for path in (tmp_path / "alone").iterdir()} == {
        "pattern-0-flows.csv", "ports.csv", "results.json", "wall_times.json",
    }  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_seed_writes_the_same_files(run, tmp_path, workers):
    first = run[1]
    run_into(tmp_path / "again", workers=workers)
    names = {path.name for path in first.iterdir()}
    assert names == {f"{name}.csv" for name in FILES} | {
        "pattern-0-flows.csv", "results.json", "trace.json", "wall_times.json",
        "p0l0-1.pcapng", "p0l1-2.pcapng", "h0-0.pcapng",
    }  # fmt: skip
    for name in names - {"wall_times.json"}:
        assert (first / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_the_order_of_rows_does_not_depend_on_who_recorded_them():
    columns = ("time_ps", "place", "reason", "priority_class", "size_bytes")
    rows = np.random.default_rng(1).integers(0, 3, (60, len(columns)))

    def parts(*cuts):
        return [{"drops": dict(zip(columns, part.T, strict=True))} for part in np.split(rows[:, :], cuts)]

    whole, split = merged(parts()), merged(parts(7, 7, 30)[::-1])
    for column in columns:
        assert whole["drops"][column].tolist() == split["drops"][column].tolist()


# --- files


@pytest.mark.parametrize("name", sorted(FILES))
def test_csv_and_parquet_hold_what_was_recorded(name, run, tmp_path):
    pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from weft.recording.tables import write_table

    table = run[0].observations.tables[name]
    expected = {key: texts(column) if isinstance(column, Names) else column.tolist() for key, column in table.items()}
    with (run[1] / f"{name}.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    plain = {key: [type(values[0])(row[key]) for row in rows] if rows else [] for key, values in expected.items()}
    assert plain == expected
    written = parquet.read_table(write_table(table, tmp_path / name, "parquet"))
    assert {key: [each or "" if isinstance(expected[key], list) and each is None else each
                  for each in written.column(key).to_pylist()] for key in expected} == expected  # fmt: skip
    for directory in (run[1], tmp_path):
        read = read_table(directory, name).columns
        assert list(read) == [column.name for column in TABLES[name].columns]
        assert {key: texts(c) if isinstance(c, Names) else c.tolist() for key, c in read.items()} == expected


def test_parquet_is_the_scenarios_choice(tmp_path):
    pytest.importorskip("pyarrow")
    run_into(tmp_path / "run", observe={"flows": True, "format": "parquet"})
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {
        "flows.parquet",
        "pattern-0-flows.csv",
        "ports.parquet",
        "results.json",
        "wall_times.json",
    }
    assert row_count(read_table(tmp_path / "run", "flows").columns) > 0


QUEUES = ["time_ps,port,priority_class,queue_bytes,transmitted_bytes", "5,p0l0:1,3,0,7", "6,p0l0:2,3,9,7"]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(QUEUES) + "\n",
        "\r\n".join(QUEUES) + "\r\n",
        "\n".join(QUEUES),
        "\n".join([QUEUES[0], '5,"p0l0:1",3,0,7', QUEUES[2]]) + "\n",
    ],
    ids=["plain", "Windows", "without the last line's end", "quoted"],
)
def test_all_forms_of_csv_read_alike(tmp_path, text):
    (tmp_path / "queues.csv").write_bytes(text.encode())
    columns = read_table(tmp_path, "queues").columns
    read = {name: texts(each) if isinstance(each, Names) else each.tolist() for name, each in columns.items()}
    assert read == {
        "time_ps": [5, 6],
        "port": ["p0l0:1", "p0l0:2"],
        "priority_class": [3, 3],
        "queue_bytes": [0, 9],
        "transmitted_bytes": [7, 7],
    }


def test_rows_of_other_lengths_that_make_up_for_each_other_are_refused(tmp_path):
    rows = [QUEUES[0], f"{QUEUES[1]},8", "p0l0:2,3,9,7"]
    (tmp_path / "queues.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    with refused(BadInputError, problem=r"queues.csv:2: has 6 cells, the header has 5"):
        read_table(tmp_path, "queues")


def test_no_such_table(tmp_path):
    assert read_table(tmp_path, "flows") is None


def test_the_trace_has_the_documented_shape(run):
    """ "Trace Event Format": the events' fields by phase; on a thread, complete events follow each other."""
    result, directory = run
    trace = json.loads((directory / "trace.json").read_text())
    assert trace["displayTimeUnit"] == "ns"
    events = trace["traceEvents"]
    by_phase = {phase: [each for each in events if each["ph"] == phase] for phase in "XMC"}
    assert sum(map(len, by_phase.values())) == len(events)
    processes = {each["pid"]: each["args"]["name"] for each in by_phase["M"] if each["name"] == "process_name"}
    assert set(processes.values()) == {"run", "queues", "h0", "h1", "h2", "h3"}
    ends = {}
    for event in sorted(by_phase["X"], key=lambda each: (each["ts"], each["dur"])):
        assert set(event) == {"ph", "name", "cat", "pid", "tid", "ts", "dur", "args"}
        thread = event["pid"], event["tid"]
        assert round(event["ts"] * 10**6) >= ends.get(thread, 0)
        ends[thread] = round((event["ts"] + event["dur"]) * 10**6)
    assert {tuple(each["args"]) for each in by_phase["C"]} == {("bytes",)}
    phases = [each["name"] for each in by_phase["X"] if each["cat"] == "phase"]
    assert phases == [phase.name for phase in result.phases]
    # Every step is there, with the times of its own, and ends when it ended.
    steps = result.observations.tables["timeline"]
    drawn = [each for each in by_phase["X"] if each["cat"] != "phase"]
    own = [(each["args"]["posted_us"], each["args"]["posted_us"] + each["args"]["took_us"]) for each in drawn]
    recorded = zip(steps["start_ps"].tolist(), steps["end_ps"].tolist(), strict=True)
    assert sorted((round(a * 10**6), round(b * 10**6)) for a, b in own) == sorted(recorded)
    assert all(round((each["ts"] + each["dur"]) * 10**6) == round(end * 10**6)
               for each, (_, end) in zip(drawn, own, strict=True))  # fmt: skip


def test_a_trace_has_a_track_for_each_rank_and_stream(tmp_path):
    """However many steps overlap: 2,051 tracks for sixteen hosts were useless."""
    run_into(
        tmp_path / "run",
        fabric={"planes": 2, "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
        traffic=[{"collective": "allreduce", "sizes": ["256KiB"], "algorithms": ["ring", "in-network"]}],
        observe={"timelines": True},
        control={"detection": "1us"},
        events=[{"at": "1ms", "link": "p0l0<->p0s0", "state": "down"}],
    )
    events = json.loads((tmp_path / "run" / "trace.json").read_text())["traceEvents"]
    processes = {each["pid"]: each["args"]["name"] for each in events if each["name"] == "process_name"}
    threads = [(processes[each["pid"]], each["args"]["name"]) for each in events if each["name"] == "thread_name"]
    streams = ("compute", "plane 0 writes", "plane 1 writes", "in the network", "waits")
    assert threads == [("run", "phases"), *((f"h{rank}", stream) for rank in range(4) for stream in streams)]


# --- captures


def test_captures_have_names_directions_and_nanoseconds(run):
    _, directory = run
    reader = RawPcapNgReader(str(directory / "p0l0-1.pcapng"))
    frames = list(reader)
    assert len(frames) > 50
    interface = frames[0][1]
    assert interface.ifname == b"p0l0:1"
    assert interface.tsresol == 10**9
    assert {meta.direction for _, meta in frames} == {1, 2}
    assert all((meta.tshigh, meta.tslow) >= (0, 0) and meta.wirelen == len(data) for data, meta in frames)


def test_both_ends_of_a_link_capture_the_same_frames(run):
    """h0's port and its leaf's: what one sends the other receives, a delay and a serialisation later."""
    _, directory = run

    def of(name):
        frames = {1: [], 2: []}
        for data, meta in RawPcapNgReader(str(directory / name)):
            frames[meta.direction].append((meta.tshigh << 32 | meta.tslow, data))
        return frames

    host, leaf = of("h0-0.pcapng"), of("p0l0-1.pcapng")
    for sent, received in ((host[2], leaf[1]), (leaf[2], host[1])):
        # Losses are the link's: what was lost was sent all the same.
        arrived = iter(received)
        matched = 0
        following = next(arrived, None)
        for time_ns, data in sent:
            if following is not None and following[1] == data:
                assert following[0] - time_ns in range(1000, 1000 + len(data) + 2)
                matched += 1
                following = next(arrived, None)
        assert matched == len(received) > 0


def test_scapy_and_tshark_read_captures(run):
    capture = run[1] / "p0l1-2.pcapng"
    with PcapNgReader(str(capture)) as reader:
        assert all(Ether in packet for packet in reader)
    lines = subprocess.run(
        ["tshark", "-r", capture, "-T", "fields", "-e", "frame.interface_name", "-e", "_ws.malformed"],
        capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    assert {line.strip() for line in lines} == {"p0l1:2"}


def test_captures_without_shims_are_all_plain_to_tshark(run, tmp_path):
    """tshark without Weft's dissector names every frame's protocols, and finds no bad checksum."""
    _, with_shims = run
    without = tmp_path / "run"
    run_into(without, observe=EVERYTHING | {"capture_shims": "remove"})
    assert (without / "flows.csv").read_bytes() == (with_shims / "flows.csv").read_bytes()
    assert (without / "int.csv").read_bytes() == (with_shims / "int.csv").read_bytes()
    for name in ("p0l0-1.pcapng", "h0-0.pcapng"):
        before, after = (list(RawPcapNgReader(str(place / name))) for place in (with_shims, without))
        times = [[(meta.tshigh, meta.tslow, meta.direction) for _, meta in frames] for frames in (before, after)]
        assert times[0] == times[1]
        shim_bytes = [len(old) - len(new) for (old, _), (new, _) in zip(before, after, strict=True)]
        assert set(shim_bytes) == {0, INT_SHIM.size_bytes}
        assert all(icrc_is_valid(data) for data, _ in after)

    def protocols(place):
        command = ["tshark", "-r", place / "p0l0-1.pcapng", "-o", "ip.check_checksum:TRUE"]
        command += ["-T", "fields", "-e", "frame.protocols", "-e", "ip.checksum.status", "-e", "_ws.malformed"]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        return [line.split("\t") for line in lines]

    opaque = [line for line in protocols(with_shims) if "ip" not in line[0].split(":")]
    assert opaque
    for names, checksum, malformed in protocols(without):
        assert {"ip", "udp", "infiniband"} <= set(names.split(":"))
        assert (checksum, malformed) == ("1", "")


# --- impossible requests


@pytest.mark.parametrize(
    ("observe", "message"),
    [
        ({"queues": ["p0l9:1"]}, "observe.queues: no port 'p0l9:1'"),
        ({"captures": ["h0:3"]}, "observe.captures: no port 'h0:3'"),
        ({"int": ["h0->h9"]}, "observe.int: 'h0->h9': no host 'h9'"),
        ({"int": ["h0->h0"]}, "from one host to another"),
        ({"interval": 0}, "observe.interval"),
        ({"queues": ["p0l0"]}, "observe.queues"),
        ({"format": "xls"}, "observe.format"),
        ({"flow": True}, "unknown key 'observe.flow'"),
    ],
)
def test_what_there_is_not_is_refused(observe, message, tmp_path):
    with pytest.raises(BadInputError, match=message.replace(".", r"\.")):
        run_scenario(scenario(observe=observe), directory=tmp_path)


def test_int_that_is_off_cannot_be_recorded(tmp_path):
    with refused(BadInputError, place="scenario: observe.int", problem="no INT to record"):
        run_scenario(scenario(observe={"int": "all"}, int=False), directory=tmp_path)


def test_the_real_clock_says_what_it_does_not_record():
    options = {"clock": "real", "observe": ObserveSection(queues="all", drops=True)}
    with refused(EnvironmentLacksError, problem="observe: queues, drops"), Fabric(two_hosts(), **options):
        pass
