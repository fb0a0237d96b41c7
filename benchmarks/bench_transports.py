"""Incasts without PFC: Ultra Ethernet, MRC, and RoCEv2 with DCQCN and with HPCC, one after the other.

    .venv/bin/python benchmarks/bench_transports.py [--transports NAME…] [--senders N…] [--bytes N] [--queue SIZE]
        [--json]

A leaf-spine of 8 spines (400 Gb/s and 500 ns a link, fabric.p4 at every switch); all senders sit on other leaves than
the receiver, 16 to a leaf, and write to it at the same time. Packets carry 4,096 bytes. A queue holds 1 MiB, some 2.5
times what a path holds. Under MRC and Ultra Ethernet switches trim what finds no room in a queue; under RoCEv2, whose
hosts read no trimmed packets, they drop it. Marks begin at 200 KiB. From 800 KiB on all packets are marked, under
RoCEv2 a fifth of them, as the authors of HPCC set switches. RoCEv2 retransmits selectively, as adapters do without
PFC, and each congestion control has its default preset.

The ratio is to the time that the receiver's link takes for the data alone. A packet that a switch trims counts once.
Times are emulated, so the machine does not matter.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from figures import argument_parser, report_rows

HOSTS_PER_LEAF = 16
RATE_BPS = 400 * 10**9
MARKS = {"kmin": "200KiB", "kmax": "800KiB"}
TRIMS = {"int": False, "trimming": {"classes": [3]}, "ecn": {**MARKS, "pmax": 1}}
DROPS = {"ecn": {**MARKS, "pmax": 0.2}}


def of_roce(congestion_control: str) -> dict[str, Any]:
    """RoCEv2 as adapters run it without PFC."""
    return {"transport": {"congestion_control": congestion_control, "retransmission": "selective-repeat"}}


TRANSPORTS: dict[str, dict[str, Any]] = {
    "UET": {"transport": {"protocol": "uet"}, **TRIMS},
    "MRC": {"transport": {"protocol": "mrc"}, **TRIMS},
    "RoCEv2, DCQCN": {**of_roce("dcqcn"), "int": False, **DROPS},
    "RoCEv2, HPCC": {**of_roce("hpcc"), "int": True, **DROPS},
}
SENDERS = (2, 4, 8, 16, 32, 64)
QUEUE = "1MiB"


@dataclass(frozen=True)
class Row:
    """An incast under one transport."""

    senders: int
    transport: str
    completion_us: float
    to_data_alone: float
    largest_queue_kib: float
    marked: int
    trimmed: int
    dropped: int
    sent_again: int


def scenario(settings: dict[str, Any], flows: Path, senders: int, queue: str) -> str:
    """The scenario of an incast under a transport."""
    fabric = {
        "leaves": 1 + -(-senders // HOSTS_PER_LEAF),
        "spines": 8,
        "hosts_per_leaf": HOSTS_PER_LEAF,
        "planes": 1,
        "host_rate": f"{RATE_BPS // 10**9}Gb/s",
        "delay": "500ns",
        "queue_capacity": queue,
    }
    traffic = [{"flow_list": str(flows), "data": "lengths"}]
    return yaml.safe_dump(
        {"name": "incast", "clock": "virtual", "seed": 1, "mtu": 4096, "fabric": fabric, "traffic": traffic, **settings}
    )


def measure(transport: str, senders: int, options: argparse.Namespace, folder: Path) -> Row:
    """Run an incast. Raises RuntimeError if `weft run` fails, or a message has not arrived."""
    flows, file, out = folder / "flows.csv", folder / "incast.yaml", folder / "results"
    rows = (f"{HOSTS_PER_LEAF + number},0,{options.bytes}" for number in range(senders))
    flows.write_text("\n".join(["source,destination,size", *rows, ""]), encoding="utf-8")
    file.write_text(scenario(TRANSPORTS[transport], flows, senders, options.queue), encoding="utf-8")
    command = [sys.executable, "-m", "weft", "run", str(file), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{transport}, {senders} senders: exit code {done.returncode}\n{done.stderr[-2000:]}")
    found = json.loads((out / "results.json").read_text(encoding="utf-8"))
    (of_flows,), (plane,) = found["flows"], found["planes"]
    completion_us = of_flows["time_ps"] / 1e6
    return Row(
        senders=senders,
        transport=transport,
        completion_us=completion_us,
        to_data_alone=completion_us / (senders * options.bytes * 8 / RATE_BPS * 1e6),
        largest_queue_kib=plane["largest_queue_bytes"] / 1024,
        marked=plane["ecn_marked_packets"],
        trimmed=sum(each["trimmed_packets"] for each in found.get("trimming", [])),
        dropped=plane["tail_drops"],
        sent_again=of_flows["retransmissions"],
    )


def main() -> None:
    """Print the table."""
    parser = argument_parser(__doc__)
    parser.add_argument("--transports", nargs="+", choices=TRANSPORTS, default=list(TRANSPORTS), metavar="NAME")
    parser.add_argument("--senders", type=int, nargs="+", default=SENDERS)
    parser.add_argument("--bytes", type=int, default=1 << 20, help="that each sender writes")
    parser.add_argument("--queue", default=QUEUE, help="size of a queue")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rows = [
            measure(transport, senders, options, Path(name))
            for senders in options.senders
            for transport in options.transports
        ]
    report_rows(f"Incast of {options.bytes:,} B each, queues of {options.queue}", rows, as_json=options.json)


if __name__ == "__main__":
    main()
