"""Reading traces of many nodes: processor time and memory until a job is known to come to an end.

    .venv/bin/python benchmarks/bench_traces.py [--nodes 1000000] [--ranks 8] [--format goal] [--json]

A trace of as many nodes is made first: each rank computes, sends to the next one, receives from the one before,
computes again, each in order; durations differ between ranks, so that no two programs are equal. A Chakra trace is
that job, written. Reading is a process of its own, so that its peak of memory is its own.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

from figures import Figure, argument_parser, report
from scheduling import measured_apart

from weft.jobs.traces import read_trace, write_trace
from weft.traffic.jobs import Job, OperationsBuilder, RankPart

GIB = 1 << 30
KINDS = 4
MESSAGE_BYTES = 4096


def job_of(nodes: int, ranks: int) -> Job:
    """Return a job of so many operations, or a few less."""
    parts = []
    for rank in range(ranks):
        builder, last = OperationsBuilder(), -1
        for _ in range(nodes // ranks // KINDS):
            first = builder.compute((1000 + rank) * 1000, after=[last] if last >= 0 else [])
            builder.send(0, MESSAGE_BYTES, after=[first])
            received = builder.receive(1 if ranks > 2 else 0, MESSAGE_BYTES)
            last = builder.compute(10_000, after=[received])
        peers = (rank + 1) % ranks, (rank - 1) % ranks
        parts.append(RankPart(builder.build(), peers if ranks > 2 else peers[:1]))
    return Job("many nodes", tuple(parts))


def measure(path: Path, format_name: str) -> dict[str, float]:
    """Read a trace; seconds of the processor, bytes at most resident, operations."""
    began_s = time.process_time()
    job = read_trace(path, format_name).job
    assert job is not None, "a trace of a job"
    return {
        "cpu_s": time.process_time() - began_s,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB,
        "operations": job.operation_count,
    }


def main() -> None:
    """Make a trace, read it, and print."""
    parser = argument_parser(__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--ranks", type=int, default=8, help="2 or more")
    parser.add_argument("--format", choices=("goal", "chakra"), default="goal")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "trace.goal" if arguments.format == "goal" else "trace")
        write_trace(job_of(arguments.nodes, arguments.ranks), path, arguments.format)
        found = measured_apart(measure, path, arguments.format, realtime=arguments.realtime)
    figures = [
        Figure(f"{arguments.format}, {arguments.ranks} ranks", found["operations"] / 1e6, "M operations"),
        Figure("  processor time", found["cpu_s"], "s"),
        Figure("  peak memory", found["peak"], "GiB"),
    ]
    report("Reading a trace", figures, as_json=arguments.json)


if __name__ == "__main__":
    main()
