"""Failures under ring all-reduces of 2,048 NICs with eight ports each: MRC, and RoCEv2 with ECMP.

    .venv/bin/python benchmarks/bench_failed_paths.py [--transports NAME…] [--failures NAME…] [--leaves N] [--hosts N]
        [--planes N] [--bytes N] [--json]

Eight planes of 32 leaves (T0) and 64 spines (T1), 64 hosts to a leaf, a port of 100 Gb/s in each plane, links of 1 µs,
fabric.p4 at every switch. Rings of 64 hosts, two to a leaf, all-reduce at the same time; each step of a ring crosses
the spines. After 100 µs

- `T0-T1 link`: the link between a leaf and a spine is cut;
- `T1 reboot`: a spine is gone for 500 µs;
- `NIC port`: a host's port is cut.

Under MRC a connection sprays over all planes, and the controller does nothing about a failure; switches hash EVs, or,
with `structured EV`, EVs name paths. Under RoCEv2 a
connection has a queue pair in each plane, which ECMP puts on one path, with DCQCN and selective repeat; switches notice
a failure and the controller changes routes in no time, `control`'s defaults. `avoided after` is from the failure to the
last packet of data lost because of it; results of RoCEv2 do not count timeouts. Times are emulated, so the machine does
not matter.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from figures import argument_parser, report_rows

RING_RANKS_PER_LEAF = 2
AT_US, REBOOT_US = 100, 500
NO_CONTROLLER = {"control": {"detection": "1s"}}
TRANSPORTS: dict[str, dict[str, Any]] = {
    "MRC": {"transport": {"protocol": "mrc"}, **NO_CONTROLLER},
    "MRC, structured EV": {
        "transport": {"protocol": "mrc"},
        "routing": {"kind": "structured_ev"},
        **NO_CONTROLLER,
    },
    "RoCEv2, ECMP": {"transport": {"congestion_control": "dcqcn", "retransmission": "selective-repeat"}},
}
SPINE = {"switch": "p0s1"}
FAILURES: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "T0-T1 link": [{"link": "p0l0<->p0s1", "state": "down", "at": f"{AT_US}us"}],
    "T1 reboot": [
        {"link": "p0s1<->*", "state": "down", "at": f"{AT_US}us"},
        {"link": "p0s1<->*", "state": "up", "at": f"{AT_US + REBOOT_US}us"},
    ],
    "NIC port": [{"link": "h0<->p0l0", "state": "down", "at": f"{AT_US}us"}],
}


@dataclass(frozen=True)
class Row:
    """One run of all rings."""

    transport: str
    failure: str
    all_reduce_us: float
    to_undisturbed: float
    packets_lost: int
    avoided_after_us: float
    sent_again: int
    timeouts: int | None


def scenario(transport: str, failure: str, options: argparse.Namespace) -> str:
    """The scenario of a run."""
    return yaml.safe_dump(
        {
            "name": "failed-paths",
            "clock": "virtual",
            "seed": 1,
            "mtu": 4096,
            "int": False,
            "fabric": {
                "leaves": options.leaves,
                "spines": options.hosts,
                "hosts_per_leaf": options.hosts,
                "planes": options.planes,
                "host_rate": "100Gb/s",
                "delay": "1us",
            },
            "events": FAILURES[failure],
            "traffic": [
                {"together": [ring(number, options) for number in range(options.hosts // RING_RANKS_PER_LEAF)]}
            ],
            **TRANSPORTS[transport],
        }
    )


def ring(number: int, options: argparse.Namespace) -> dict[str, Any]:
    """An all-reduce of two hosts of each leaf; neighbours in the ring are on different leaves."""
    first = number * RING_RANKS_PER_LEAF
    ranks = [
        leaf * options.hosts + first + each for each in range(RING_RANKS_PER_LEAF) for leaf in range(options.leaves)
    ]
    return {
        "collective": "allreduce",
        "algorithms": ["ring"],
        "sizes": [options.bytes],
        "data": "lengths",
        "ranks": ranks,
    }


def run(transport: str, failure: str, options: argparse.Namespace) -> Mapping[str, Any]:
    """Return the results. Raises RuntimeError if `weft run` fails."""
    with tempfile.TemporaryDirectory() as name:
        file, out = Path(name) / "failed_paths.yaml", Path(name) / "results"
        file.write_text(scenario(transport, failure, options), encoding="utf-8")
        command = [sys.executable, "-m", "weft", "run", str(file), "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{transport}, {failure}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        results: Mapping[str, Any] = json.loads((out / "results.json").read_text(encoding="utf-8"))
        return results


def row(transport: str, failure: str, found: Mapping[str, Any], undisturbed_ps: int) -> Row:
    """Return the figures of a run."""
    taken_ps = slowest_ps(found)
    downs = [each for each in found["link_events"] if each["state"] == "down" and each["happened_ps"] is not None]
    lost = sum((each[kind] or {}).get("packets", 0) for each in downs for kind in ("in_flight", "queued", "refused"))
    signals = found.get("path_signals", [])
    late = [each["last_data_loss_ps"] - each["happened_ps"] for each in downs if each["last_data_loss_ps"] is not None]
    return Row(
        transport=transport,
        failure=failure,
        all_reduce_us=taken_ps / 1e6,
        to_undisturbed=taken_ps / undisturbed_ps,
        packets_lost=lost,
        avoided_after_us=max(late, default=0) / 1e6,
        sent_again=found["retransmissions"],
        timeouts=sum(each["timeouts"] for each in signals) if signals else None,
    )


def slowest_ps(found: Mapping[str, Any]) -> int:
    """The time of the slowest ring."""
    return max(each["time_ps"] for each in found["collectives"])


def main() -> None:
    """Print the table."""
    parser = argument_parser(__doc__)
    parser.add_argument("--transports", nargs="+", choices=TRANSPORTS, default=list(TRANSPORTS), metavar="NAME")
    parser.add_argument("--failures", nargs="+", choices=list(FAILURES)[1:], default=list(FAILURES)[1:], metavar="NAME")
    parser.add_argument("--leaves", type=int, default=32, help="of a plane")
    parser.add_argument("--hosts", type=int, default=64, help="of a leaf, as many as spines")
    parser.add_argument("--planes", type=int, default=8)
    parser.add_argument("--bytes", type=int, default=4 << 20, help="that each host reduces")
    options = parser.parse_args()
    rows = []
    for transport in options.transports:
        undisturbed = run(transport, "none", options)
        rows.append(row(transport, "none", undisturbed, slowest_ps(undisturbed)))
        for failure in options.failures:
            rows.append(row(transport, failure, run(transport, failure, options), slowest_ps(undisturbed)))
    report_rows(f"Ring all-reduces of {options.leaves * options.hosts:,} hosts", rows, as_json=options.json)


if __name__ == "__main__":
    main()
