"""Traces: a job that is read can come to an end, and is written and read back the same; others are refused."""

from __future__ import annotations

import pickle
import random
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fuzz.target import Finding
from weft.jobs.traces import TraceError, read_trace, write_trace
from weft.jobs.traces.assembling import digest_of
from weft.paths import ROOT
from weft.traffic.jobs import CollectiveCall, Group, Job, OperationsBuilder, RankPart

_SEPARATOR = b"\n----\n"
"""Between a case's format and files."""
_NAMES = {
    "goal": "x.goal",
    "flow_csv": "x.csv",
    "hpcc_flows": "x.txt",
    "nccl_csv": "x.csv",
    "nccl_log": "x.log",
    "flight_recorder": "x0.json",
    "kineto": "x0.json",
    "param_comms": "x0.json",
    "pytorch_et": "x0.json",
    "simai": "x.txt",
}
_EXAMPLES = ROOT / "examples" / "traces"
_PIECES = (
    b"0", b"1", b"-1", b"9" * 19, b"9" * 200, b"l0", b" requires ", b"irequires", b"send 1b to ", b"recv 1b from ",
    b"\n", b"}", b"{", b"/*", b"*/", b"//", b"calc ", b" cpu 4095", b"rank 0 {", b"num_ranks ", b",", b'"', b"\xff",
    b"\x00", b"comm_size", b"pg_name", b"weft", b"\x80\x80\x80\x80\x80", b"\x7f", b"AllGather", b"Recv", b"1e9", b"3us",
)  # fmt: skip
_NUMBERS = re.compile(r"\d+|'[^']*'")
_LOG = b"""rank,operation,count,datatype,communicator,root,stream,group,start
0,AllReduce,10,float32,w,,a,,
1,AllReduce,10,float32,w,,a,,
0,Send,4,int8,w,1,b,g,3us
1,Recv,4,int8,w,0,b,g,
"""
_DUMP = {
    "pg_config": {"0": {"name": "0", "ranks": "[0, 1]"}},
    "entries": [
        {
            "process_group": ("0", "all"),
            "collective_seq_id": 1,
            "p2p_seq_id": 0,
            "profiling_name": "nccl:all_reduce",
            "time_created_ns": 1 << 40,
            "input_sizes": [[8]],
            "input_dtypes": ["Half"],
        }
    ],
}


class TracesTarget:
    """A case is the name of a format, and a file; of Chakra the groups' file, and one for each rank."""

    name = "traces"
    suffix = ".trace"
    covered_paths = ("weft/jobs/traces", "weft/traffic/jobs")
    timeout_s = 20.0

    def seeds(self) -> list[bytes]:
        """A small job in each format that is written, and a small file of the others."""
        job = _job()
        with tempfile.TemporaryDirectory() as folder:
            files = write_trace(job, Path(folder, "x"), "chakra")
            ranks = [path.read_bytes() for path in files if path.suffix == ".et"]
            groups = Path(folder, "x.json").read_bytes()
            (goal,) = write_trace(job, Path(folder, "x.goal"), "goal")
            text = goal.read_bytes()
        return [
            _SEPARATOR.join([b"chakra", groups, *ranks]),
            _SEPARATOR.join([b"goal", text]),
            _SEPARATOR.join([b"goal", (_EXAMPLES / "pair.goal").read_bytes()]),
            _SEPARATOR.join([b"nccl_csv", _LOG]),
            _SEPARATOR.join([b"flow_csv", (_EXAMPLES / "flows.csv").read_bytes()]),
            _SEPARATOR.join([b"nccl_log", (_EXAMPLES / "nccl.log").read_bytes()]),
            _SEPARATOR.join(
                [b"flight_recorder", (_EXAMPLES / "flight_recorder" / "nccl_trace_rank_0.json").read_bytes()]
            ),
            _SEPARATOR.join([b"flight_recorder", pickle.dumps(_DUMP, protocol=2)]),
            _SEPARATOR.join([b"kineto", (_EXAMPLES / "kineto" / "rank0.json").read_bytes()]),
            _SEPARATOR.join([b"param_comms", (_EXAMPLES / "param_comms" / "0.json").read_bytes()]),
            _SEPARATOR.join([b"pytorch_et", (_EXAMPLES / "pytorch_et" / "rank0.json").read_bytes()]),
            _SEPARATOR.join([b"simai", (_EXAMPLES / "simai.txt").read_bytes()]),
            _SEPARATOR.join([b"hpcc_flows", b"2\n0 1 3 100 20000 0\n2 1 3 100 30000 0.000001\n"]),
        ]

    def mutate(self, rng: random.Random, parents: Sequence[bytes]) -> bytes:
        """A case with a few bytes or pieces changed, cut off, or taken from another."""
        case = bytearray(parents[0])
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(len(case) + 1)
            other = parents[-1]
            match rng.randrange(6):
                case 0:
                    del case[at : at + rng.choice((1, 2, 8, len(case)))]
                case 1:
                    case[at:at] = rng.choice(_PIECES)
                case 2:
                    case[at : at + 1] = rng.randbytes(1)
                case 3:
                    begin = rng.randrange(len(other) + 1)
                    case[at:at] = other[begin : begin + rng.randrange(64)]
                case 4:
                    piece = rng.choice(_PIECES)
                    case[at : at + len(piece)] = piece
                case _:
                    begin = rng.randrange(len(case) + 1)
                    case[at:at] = case[begin : begin + rng.randrange(32)]
        return bytes(case)

    def execute(self, case: bytes) -> str:
        """Read the trace; write the job and read it again."""
        kind, *files = case.split(_SEPARATOR)
        name = kind.decode("latin-1")
        if not files or (name != "chakra" and name not in _NAMES):
            return "no case"
        with tempfile.TemporaryDirectory() as folder:
            path = _placed(Path(folder), name, files)
            try:
                trace = read_trace(path, name)
            except TraceError as error:
                if "x" not in str(error):
                    raise Finding(f"an error without its file: {error}") from error
                return "refused: " + _NUMBERS.sub("·", str(error).replace(folder, ""))[:60]
            if trace.job is None:
                return f"{name}: flows"
            write_trace(trace.job, Path(folder, "again"), "chakra")
            again = read_trace(Path(folder, "again")).job
            if again is None or _plain(again) != _plain(trace.job):
                raise Finding("a job that was written and read is another")
        return f"{name}: read"


def _placed(folder: Path, name: str, files: list[bytes]) -> Path:
    if name != "chakra":
        (folder / _NAMES[name]).write_bytes(files[0])
        return folder / _NAMES[name]
    (folder / "x.json").write_bytes(files[0])
    for rank, content in enumerate(files[1:]):
        (folder / f"x.{rank}.et").write_bytes(content)
    return folder / "x"


def _plain(job: Job) -> object:
    parts = [(digest_of(part.operations), part.peers, part.groups, part.compute_scale) for part in job.parts]
    return job.name, job.groups, job.calls, job.traffic_classes, parts


def _job() -> Job:
    """Return a job with operations of all kinds."""
    builder = OperationsBuilder()
    first = builder.compute(1_500_000, name="layer 0", category="forward")
    sent = builder.send(0, 64, tag=3, after=[first])
    received = builder.receive(0, 64, tag=3, after_start=[sent], stream=2)
    builder.collective(0, 0, after=[received, builder.timer(7000)])
    operations = builder.build()
    parts = tuple(RankPart(operations, (1 - rank,), (0,), 1.0 + rank / 4) for rank in range(2))
    return Job("job", parts, (Group("all", (1, 0)),), (CollectiveCall("allreduce", 64),), {"forward": 2})
