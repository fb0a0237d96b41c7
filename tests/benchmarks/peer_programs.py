"""Programs that stand in for other simulators: each reads its simulator's files and prints in its format.

Formats are those of the simulators' sources, which the adapters in benchmarks/peers name. A flow takes as long as its
bytes take at 100 Gb/s and 10 µs more, whatever else there is.
"""

from __future__ import annotations

import sys
from pathlib import Path

_COMMON = """#!{python}
import json, re, sys
from pathlib import Path
LEAVES_OUT = {leaves_out}
def took_ns(size_bytes):
    return 10_000 + size_bytes * 8 // 100
"""

HTSIM = (
    _COMMON
    + """
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
rows = open(options["-tm"]).read().splitlines()
assert open(options["-topo"]).read().startswith(rows[0])
print("Tier 0 QueueSize Down 178880 bytes")
print("Setting ECN to parameters low 37440 high 145600 enable on tor downlink 1")
flows = [re.fullmatch(r"(\\d+)->(\\d+) id (\\d+) start (\\d+) size (\\d+)", row) for row in rows[2:]]
for flow in flows[LEAVES_OUT:]:
    end_us = int(flow[4]) + took_ns(int(flow[5])) / 1000
    name = f"Uec_{{flow[1]}}_{{flow[2]}}"
    print(f"Flow {{name}} flowId {{flow[3]}} uecSrc 0 finished at {{end_us:g}} total messages 1")
"""
)

NS3 = (
    _COMMON
    + """
config = dict(row.split(maxsplit=1) for row in Path(sys.argv[1]).read_text().splitlines())
nodes, switches, links = map(int, Path(config["TOPOLOGY_FILE"]).read_text().splitlines()[0].split())
def address(host):
    return 0x0B000001 + ((host // 256) << 16) + ((host % 256) << 8)
ports, ended = {{}}, []
for row in Path(config["FLOW_FILE"]).read_text().splitlines()[1:]:
    source, destination, priority, dport, size, start = row.split()
    source, destination, size = int(source), int(destination), int(size)
    assert max(source, destination) < nodes - switches
    port = ports.setdefault((source, destination), 10000)
    ports[source, destination] += 1
    start_ns = round(float(start) * 1e9)
    ends = f"{{address(source):08x}} {{address(destination):08x}} {{port}} {{dport}}"
    ended.append((start_ns + took_ns(size), f"{{ends}} {{size}} {{start_ns}} {{took_ns(size)}} 1"))
lines = [line + chr(10) for _, line in sorted(ended)]
Path(config["FCT_OUTPUT_FILE"]).write_text("".join(lines[LEAVES_OUT:]))
Path(config["PFC_OUTPUT_FILE"]).write_text("2000000000 20 1 3 0" + chr(10) + "2000000500 20 1 3 1" + chr(10))
print("Running Simulation.")
"""
)

ASTRA_SIM = (
    _COMMON
    + """
sys.path.insert(0, {root!r})
from weft.jobs.traces import read_trace
from weft.traffic.jobs import Kind
options = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
assert json.loads(Path(options["system-configuration"]).read_text())["trace-enabled"] == 1
trace = Path(options["workload-configuration"])
job = read_trace(trace.parent, "chakra").job
ends = {{}}
for rank, part in enumerate(job.parts):
    operations, start_ns = part.operations, 0
    for number in range(len(operations)):
        if operations.kind[number] == Kind.COMPUTE:
            start_ns = int(operations.duration_ps[number]) // 1000
        if operations.kind[number] == Kind.SEND:
            ends[int(operations.tag[number])] = start_ns + took_ns(int(operations.size_bytes[number]))
Path("log").mkdir(exist_ok=True)
lines = []
for flow, end_ns in sorted(ends.items())[LEAVES_OUT:]:
    shown = f"tick={{end_ns}}, node->id=1, node->name=flow {{flow}}"
    lines.append(f"[2026-01-01T00:00:00+0000] [D] <workload>: callback,sys->id=3, {{shown}}, node->type=5")
    lines.append(f"[2026-01-01T00:00:00+0000] [D] <workload>: callback,sys->id=4, {{shown}}, node->type=6")
Path("log/log.log").write_text("".join(line + chr(10) for line in lines))
print("[2026-01-01T00:00:00+0000] [I] <workload>: sys[0] finished, 1 cycles, exposed communication 1 cycles.")
"""
)

PROGRAMS = {"htsim-uec": HTSIM, "ns3-hpcc": NS3, "astra-sim": ASTRA_SIM}
"""By the names of the adapters."""


def stand_in(folder: Path, peer: str = "htsim-uec", leaves_out: int = 0) -> Path:
    """Write the program that stands in for a peer; it says nothing about as many flows as it leaves out."""
    root = str(Path(__file__).resolve().parents[2])
    file = folder / peer
    file.write_text(PROGRAMS[peer].format(python=sys.executable, leaves_out=leaves_out, root=root), encoding="utf-8")
    file.chmod(0o755)
    return file
