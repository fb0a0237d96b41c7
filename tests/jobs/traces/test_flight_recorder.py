"""Dumps of PyTorch's flight recorder, as JSON and as pickles of plain data."""

import json
import os
import pickle
from collections import OrderedDict
from pathlib import Path

import pytest

from weft import Fabric, topologies
from weft.jobs.traces import TraceError, memory, read_trace
from weft.jobs.traces.calls.files import rank_of_name
from weft.paths import ROOT
from weft.traffic.jobs import CollectiveCall, Kind

EXAMPLE = ROOT / "examples" / "traces" / "flight_recorder"
PUBLIC = os.environ.get("WEFT_FLIGHT_RECORDER", "")
CONFIG = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}


def entry(name: str, number: int = 1, elements: int = 8, **changes):
    return {
        "process_group": ("0", "default_pg"),
        "collective_seq_id": number,
        "p2p_seq_id": number,
        "profiling_name": f"nccl:{name}",
        "time_created_ns": number,
        "input_sizes": [[elements]],
        "input_dtypes": ["Float"],
        "output_sizes": [[elements]],
        "output_dtypes": ["Float"],
        "state": "completed",
        **changes,
    }


@pytest.fixture
def read(tmp_path):
    def of(*ranks, as_pickle: bool = False):
        for rank, entries in enumerate(ranks):
            dump = {"version": "2.10", "pg_config": CONFIG, "entries": entries}
            data = pickle.dumps(dump, protocol=2 + rank) if as_pickle else json.dumps(dump).encode()
            (tmp_path / f"dump_{rank}").write_bytes(data)
        return read_trace(tmp_path if len(ranks) > 1 else tmp_path / "dump_0")

    return of


@pytest.mark.parametrize("as_pickle", [False, True])
def test_the_calls_of_both_ranks_join(read, as_pickle):
    first = [entry("all_reduce"), entry("_reduce_scatter_base", 2, 8, output_sizes=[[4]]), entry("send 0->1", 3)]
    second = [*first[:2], entry("recv 1<-0", 3)]
    trace = read(first, second, as_pickle=as_pickle)
    assert trace.job.calls == (CollectiveCall("allreduce", 32), CollectiveCall("reducescatter", 32))
    kinds = trace.job.parts[1].operations.kind.tolist()
    assert kinds == [Kind.COLLECTIVE, Kind.TIMER, Kind.COLLECTIVE, Kind.TIMER, Kind.RECEIVE]
    assert trace.locate(1, 4).endswith("dump_1: entry 2")


def test_what_only_some_dumps_have_is_left_out(read):
    first = [entry("all_reduce", number) for number in (4, 5, 6)] + [entry("send 0->1", 7), entry("send 0->1", 8)]
    second = [entry("all_reduce", number) for number in (5, 6, 7)] + [entry("recv 1<-0", 9)]
    trace = read(first, second)
    assert [len(part.operations.of_kind(Kind.COLLECTIVE)) for part in trace.job.parts] == [2, 2]
    assert [len(part.operations.of_kind(Kind.SEND)) for part in trace.job.parts] == [1, 0]
    assert trace.notes[0] == "3 calls that not all dumps of their group have: left out"


def test_roots_and_shares_that_are_not_recorded_are_said(read):
    entries = [entry("broadcast"), entry("all_to_all", 2)]
    notes = read(entries, entries).notes
    assert notes[0] == "roots are not recorded: rank 0 of the group in 2 calls"
    assert notes[1] == "shares of all-to-alls are not recorded: taken as equal"


def test_the_example_runs():
    with Fabric(topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=1), clock="virtual") as fabric:
        ran = fabric.run_job(read_trace(EXAMPLE).job)
    # The last call was created 2.5 ms after the first one.
    assert 2_500_000_000 < ran.duration_ps < 4_000_000_000


class Command:
    def __reduce__(self):
        return (os.system, ("false",))


@pytest.mark.parametrize(
    "data",
    [
        pickle.dumps({"entries": Command(), "pg_config": 1}),
        pickle.dumps({"entries": OrderedDict(), "pg_config": 1}),
        b"\x80\x02}(X\x07\x00\x00\x00entriesq\x00X\x07\x00\x00\x00entries",
        b"\x80\x02}entries.",
        b"\x80\x02(((entries.",
        b"\x80\x02hentries\x01.",
        b"\x80\x02N\x86entries.",
        b"\x80\x02}" + b"\x85" * 100_000 + b"Ns. entries",
        b"\x80\x02X\xff\xff\xff\xffentries.",
        b"\x80\x02Nr\xff\xff\xff\x7f0. entries",
    ],
)  # fmt: skip
def test_other_pickles_are_refused_without_running_them(tmp_path, data):
    (tmp_path / "dump_0").write_bytes(data)
    with pytest.raises(TraceError, match=r"dump_0: (byte|is no valid pickle)"):
        read_trace(tmp_path / "dump_0", "flight_recorder")


DEEP = b"]" + b"]" * 199_999 + b"a" * 199_999
"""A list within a list, and so on."""
SHARED = b"]" + b"".join(b"q%c" % number + b"h%c" % number * 2 + b"\x87" for number in range(60))
"""A tuple of three times the same tuple, and so on."""


@pytest.mark.parametrize("nested", [DEEP, SHARED])
def test_pickles_of_nested_lists_are_named_at_a_bounded_cost(tmp_path, nested):
    entry_of_list = b"]}X\x0d\x00\x00\x00process_group](" + nested + b"esa"
    dump = b"\x80\x02}(X\x09\x00\x00\x00pg_config}X\x07\x00\x00\x00entries" + entry_of_list + b"u."
    (tmp_path / "dump_0").write_bytes(dump)
    with pytest.raises(TraceError, match=r"entry 0: process_group \[[\[(]+… \(a list of 1\) \(valid: one of pg_config"):
        read_trace(tmp_path / "dump_0", "flight_recorder")


@pytest.mark.parametrize(("data", "ratio"), [(b"\x80\x02(" + b"}" * 1000 + b"l.", 80), (b"[" + b"{}," * 333, 25)])
def test_files_that_could_take_too_much_memory_are_refused(tmp_path, monkeypatch, data, ratio):
    (tmp_path / "dump_0").write_bytes(data)
    monkeypatch.setattr(memory, "available_bytes", lambda: ratio * len(data) - 1)
    with pytest.raises(TraceError, match=rf"{len(data)} bytes of .* need about {ratio} times as much memory"):
        read_trace(tmp_path / "dump_0", "flight_recorder")
    monkeypatch.setattr(memory, "available_bytes", lambda: ratio * len(data))
    with pytest.raises(TraceError, match=r"byte 1003: opcode LIST|is not valid JSON"):
        read_trace(tmp_path / "dump_0", "flight_recorder")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"process_group": ["1", ""]}, "entry 0: process_group ['1'] (valid: one of pg_config"),
        ({"input_dtypes": ["Quarter"]}, "entry 0: type 'Quarter' (valid: bfloat16, "),
        ({"input_dtypes": [], "output_dtypes": []}, "entry 0: type '' (valid: bfloat16, "),
        ({"profiling_name": "nccl:sort"}, "entry 0: operation 'nccl:sort' (valid: allgather, "),
        ({"profiling_name": "nccl:send 0->7"}, "entry 0: rank 7 of a group of 2 (valid: 0 to 1)"),
        ({"profiling_name": "nccl:\x1b[2J"}, "profiling_name is 'nccl:\\x1b[2J' (valid: printable characters)"),
        ({"input_sizes": [[1 << 40, 1 << 40]]}, f"input_sizes of {1 << 80} elements (valid: up to {1 << 46})"),
        ({"input_sizes": [[1] * 65]}, "input_sizes of 65 dimensions (valid: up to 64)"),
        ({"input_sizes": [[-1]]}, "entry 0: input_sizes is -1 (valid: 0 to "),
        ({"time_created_ns": "soon"}, "entry 0: time_created_ns is 'soon' (valid: 0 to "),
        ({"time_created_ns": None}, "entry 0: time_created_ns is missing"),
        ({"collective_seq_id": 1.5}, "entry 0: collective_seq_id is 1.5 (valid: 0 to "),
    ],
)
def test_entries_that_cannot_be_are_named(read, changes, said):
    with pytest.raises(TraceError) as error:
        read([entry("all_reduce", **changes)])
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "dump_0: [] is no object"),
        ('{"entries": [}', "dump_0: is not valid JSON: "),
        ('{"entries": NaN}', "is not valid JSON: NaN is no number of JSON"),
        ("[" * 100_000, "is not valid JSON: "),
        ('{"pg_config": {}, "entries": {}}', "entries is {} (valid: a list)"),
        ('{"pg_config": {"0": {"ranks": "all"}}, "entries": []}', "pg_config 0: ranks is no list"),
        ('{"pg_config": {"\\ud800": {"ranks": [0]}}, "entries": []}', "pg_config: name is '\\ud800' (valid: printable"),
        ('{"pg_config": {}, "entries": []}', "no calls"),
    ],
)
def test_files_that_are_no_dumps_are_refused(tmp_path, text, said):
    (tmp_path / "dump_0").write_text(text)
    with pytest.raises(TraceError) as error:
        read_trace(tmp_path / "dump_0", "flight_recorder")
    assert said in str(error.value)


def test_the_rank_is_a_whole_number_of_the_name():
    assert rank_of_name(Path("host.0017.pt.trace.json")) == 17
    assert rank_of_name(Path("host_4711.1700000000000012345.pt.trace.json"), 3) == 3
    with pytest.raises(TraceError, match="the rank is not known"):
        rank_of_name(Path("host_4711.1700000000000012345.pt.trace.json"))


def test_the_rank_is_in_the_name(tmp_path):
    (tmp_path / "dump").write_text('{"pg_config": {}, "entries": []}')
    with pytest.raises(TraceError, match="dump: the rank is not known"):
        read_trace(tmp_path / "dump", "flight_recorder")


@pytest.mark.skipif(not PUBLIC, reason="WEFT_FLIGHT_RECORDER names no folder of dumps")
def test_public_dumps_are_read():
    assert read_trace(Path(PUBLIC), "flight_recorder").job is not None
