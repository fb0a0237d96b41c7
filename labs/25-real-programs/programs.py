"""ib_write_bw and Open MPI through an incast of a lab: what programs, adapters and switches say of it.

    sudo .venv/bin/python labs/25-real-programs/programs.py [--controls fixed-window dcqcn hpcc] [--mib 4]
        [--dilation 300] [--timeout 300]

The network is that of scenario.yaml, in Mininet, once for each congestion control: h1, h2 and h3 write to h0. Both
run on the hosts' RDMA devices, Open MPI over UCX. What is missing is said and left out. Rates are emulated: those that
programs measure are real, and multiplied by the dilation.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from weft import Fabric
from weft.clocks.real.lab import MininetLab
from weft.clocks.real.parallel_programs import open_mpi_command, outputs_of
from weft.errors import CheckFailedError, EnvironmentLacksError, WeftError
from weft.run.spec import run_spec
from weft.scenario.parsing import Change, load_scenario
from weft.verbs.libraries import missing_because

FOLDER = Path(__file__).parent
SCENARIO, RANK = FOLDER / "scenario.yaml", FOLDER / "mpi_incast.py"
RECEIVER, SWITCH, RECEIVERS_PORT = "h0", "p0l0", 1
PLANE_NETWORK = "10.0.0.0/16"
MESSAGE_BYTES, FIRST_TCP_PORT = 1 << 16, 18515
COUNTERS = "/sys/class/infiniband/weft0/hw_counters"
AVERAGE_GBPS = 3
"""Column of perftest's last line of figures."""


@dataclass(frozen=True)
class Asked:
    """Sizes and patience of a measurement."""

    bytes_per_sender: int
    dilation: float
    timeout_s: float


@dataclass(frozen=True)
class Seen:
    """An incast of programs: emulated rates of their data, and what counters say."""

    gbps: dict[str, float]
    marked: int
    stamped: int
    cnps_sent: int
    cnps_handled: int


def lab_of(fabric: Fabric) -> MininetLab:
    """Return the fabric's lab."""
    assert isinstance(fabric.lab, MininetLab)
    return fabric.lab


def senders_of(fabric: Fabric) -> list[str]:
    """Return all hosts but the receiver."""
    return [host.name for host in fabric.topology.hosts if host.name != RECEIVER]


def perftest(fabric: Fabric, asked: Asked) -> dict[str, float]:
    """Run ib_write_bw from each sender to a server of its own at the receiver; return Gb/s of each, emulated."""
    if shutil.which("ib_write_bw") is None:
        raise EnvironmentLacksError("ib_write_bw is missing (the package perftest)")
    messages = max(5, asked.bytes_per_sender // MESSAGE_BYTES)
    options = f"-x 0 -F -s {MESSAGE_BYTES} -n {messages} --report_gbits"
    ports = dict(zip(senders_of(fabric), range(FIRST_TCP_PORT, 1 << 16), strict=False))
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        # Clients try once, so they wait for all servers, and begin together.
        go = Path(folder) / "go"
        listening = f"$(ss -Hltn 'sport >= {FIRST_TCP_PORT} and sport <= {max(ports.values())}' | wc -l)"
        servers = "".join(f"ib_write_bw {options} -p {port} & " for port in ports.values())
        opens = f"until [ {listening} -ge {len(ports)} ]; do sleep 0.1; done; touch {go}; wait"
        commands = {
            sender: ["sh", "-c", f"until [ -e {go} ]; do sleep 0.02; done; ib_write_bw {options} -p {port} {RECEIVER}"]
            for sender, port in ports.items()
        }
        commands[RECEIVER] = ["sh", "-c", servers + opens]
        printed = outputs_of(lab_of(fabric), commands, asked.timeout_s)
    found = {}
    for sender in senders_of(fabric):
        rows = [line.split() for line in printed[sender].splitlines() if line.startswith(f" {MESSAGE_BYTES} ")]
        if not rows:
            raise CheckFailedError(f"{sender}: ib_write_bw printed no figures: {printed[sender][-2000:]}")
        found[sender] = float(rows[-1][AVERAGE_GBPS]) * asked.dilation
    return found


def open_mpi(fabric: Fabric, asked: Asked) -> dict[str, float]:
    """Run mpi_incast.py over UCX on the devices; return Gb/s of each sender, emulated."""
    if shutil.which("mpirun") is None or find_spec("mpi4py") is None:
        raise EnvironmentLacksError("Open MPI or mpi4py is missing (the packages openmpi-bin and python3-mpi4py)")
    hosts = [RECEIVER, *senders_of(fabric)]
    rank = ["env", "UCX_TLS=rc,self", "UCX_NET_DEVICES=weft0:1", sys.executable, str(RANK), str(asked.bytes_per_sender)]
    command = open_mpi_command(hosts, rank, PLANE_NETWORK, {"pml": "ucx", "btl": "self"})
    printed = outputs_of(lab_of(fabric), {RECEIVER: command}, asked.timeout_s)[RECEIVER]
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    if len(rows) != len(hosts) - 1 or any(each["wrong"] for each in rows):
        raise CheckFailedError(f"messages are missing or wrong: {printed[-2000:]}")
    return {hosts[each["rank"]]: 8 * each["bytes"] / each["seconds"] / 1e9 * asked.dilation for each in rows}


PROGRAMS: Mapping[str, Callable[[Fabric, Asked], dict[str, float]]] = {"ib_write_bw": perftest, "Open MPI": open_mpi}


def printed_by(*words: str) -> str:
    """Return what a command of Weft's prints."""
    return subprocess.run([sys.executable, "-m", "weft", *words], capture_output=True, text=True, check=True).stdout


def device_counter(host: str, name: str) -> int:
    """Return a counter of a host's RDMA device, which any monitoring program reads there."""
    return int(printed_by("exec", host, "cat", f"{COUNTERS}/{name}"))


def counted(fabric: Fabric) -> tuple[int, int, int, int]:
    """Return marks and INT stamps of the switch's port to the receiver, and CNPs that adapters sent and handled."""
    port = lab_of(fabric).controller.read_counters()[SWITCH].ports.get(RECEIVERS_PORT)
    stamped = sum(
        int(row["stamped"])
        for row in json.loads(printed_by("controller", "int", "--json", SWITCH))
        if str(row["port"]).split()[0] == str(RECEIVERS_PORT)
    )
    senders = senders_of(fabric)
    handled = sum(device_counter(host, "rp_cnp_handled") for host in senders)
    marked = 0 if port is None else port.ecn_marked.packets
    return marked, stamped, device_counter(RECEIVER, "np_cnp_sent"), handled


def seen(fabric: Fabric, asked: Asked, run: Callable[[Fabric, Asked], dict[str, float]]) -> Seen:
    """Run an incast; counters are what it has added."""
    before = counted(fabric)
    gbps = run(fabric, asked)
    return Seen(gbps, *(now - then for now, then in zip(counted(fabric), before, strict=True)))


def measured(control: str, asked: Asked, programs: Sequence[str]) -> dict[str, Seen]:
    """Bring the lab up with a congestion control, and run the incasts; what is missing is said and left out."""
    changes = {"clock": "real", "dilation": asked.dilation, "transport.congestion_control": control}
    scenario = load_scenario(SCENARIO, [Change(key, value, f"{key}={value}") for key, value in changes.items()])
    found: dict[str, Seen] = {}
    with Fabric(run_spec(scenario)) as fabric:
        for name in programs:
            try:
                found[name] = seen(fabric, asked, PROGRAMS[name])
            except EnvironmentLacksError as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
        lateness = fabric.summary().lateness
    if lateness is not None and not lateness.valid:
        needed = f"{lateness.sufficient_dilation:g}"
        print(f"the machine was too slow for its switches: set --dilation {needed} or more", file=sys.stderr)
    return found


def print_table(found: Mapping[str, Mapping[str, Seen]]) -> None:
    """Print a row for each congestion control and program."""
    print(f"{'':<14}{'':<13}{'Gb/s of data (emulated)':>30}{'ECN':>8}{'INT':>8}{'CNPs':>8}{'CNPs':>9}")
    print(
        f"{'control':<14}{'program':<13}{'by sender':>22}{'sum':>8}{'marks':>8}{'stamps':>8}{'sent':>8}{'handled':>9}"
    )
    for control, programs in found.items():
        for name, each in programs.items():
            rates = ", ".join(f"{rate:.2f}" for rate in each.gbps.values())
            print(
                f"{control:<14}{name:<13}{rates:>22}{sum(each.gbps.values()):>8.2f}{each.marked:>8}{each.stamped:>8}"
                f"{each.cnps_sent:>8}{each.cnps_handled:>9}"
            )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controls", nargs="+", default=["fixed-window", "dcqcn", "hpcc"])
    parser.add_argument("--mib", type=int, default=4, help="that each sender sends")
    parser.add_argument("--dilation", type=float, default=300.0)
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that each program has")
    options = parser.parse_args()
    asked = Asked(options.mib << 20, options.dilation, options.timeout)
    if lacking := missing_because():
        raise SystemExit(lacking)
    try:
        found = {control: measured(control, asked, list(PROGRAMS)) for control in options.controls}
    except WeftError as error:
        raise SystemExit(str(error)) from None
    print_table(found)


if __name__ == "__main__":
    main()
