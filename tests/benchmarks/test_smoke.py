"""Every benchmark runs, at a small size, with the options that pages name."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import performance
import pytest

from weft.paths import ROOT
from weft.verbs.libraries import missing_because

BENCHMARKS = sorted((ROOT / "benchmarks").glob("bench_*.py"))
SMALL = {
    "bench_aggregation_goodput.py": "--size 256KiB --rates 100 --lanes 64",
    "bench_dragonfly.py": "--hosts 72 --loads 0.1 --patterns uniform adversarial --duration-us 2 --plot p.svg",
    "bench_fast_forward.py": "--shapes data",
    "bench_failed_paths.py": "--leaves 2 --hosts 4 --planes 2 --bytes 262144",
    "bench_flaps.py": "--flaps 3",
    "bench_float_errors.py": "",
    "bench_flowlets.py": "--hosts 16 --burst 9000 --bursts 2",
    "bench_in_network.py": "sizes --ranks 4 --sizes 1024 --picture p.svg",
    "bench_link_watch.py": "--healthy 2 --lossy 1",
    "bench_load_balancing.py": "--bytes 20000 --modes flow flowlet",
    "bench_lossy_messages.py": "--messages 300 --ranks 8",
    "bench_mpi.py": "--leaves 2 --hosts-per-leaf 2 --kib 8 --repetitions 1",
    "bench_mpi_over_tcp.py": "--sizes 4096 --repetitions 1",
    "bench_noisy_parts.py": "--healthy 2 --planted 1 --json",
    "bench_packet_hops.py": "--ranks 4",
    "bench_planes.py": "--planes 2 --leaves 2 --hosts-per-leaf 2 --mib 1 --picture p.svg",
    "bench_rails.py": "--fabrics rail-only --patterns moe_dispatch",
    "bench_scale_up.py": "sizes --systems dgx-h100 --sizes 4096 --algorithms nvls --picture p.svg",
    "bench_shared_spines.py": "--jobs 2 --size 8192 --picture p.svg",
    "bench_tcp_linux.py": "--duration 3",
    "bench_torus.py": "--shape 3 3 --bytes 65536",
    "bench_transports.py": "--senders 2 --bytes 65536",
    "bench_verbs_programs.py": "--iterations 20 --turns 1",
}
"""Arguments with which a run takes seconds."""
ELSEWHERE = {
    "bench_gate.py": "test_gate.py",
    "bench_same_flows.py": "test_same_flows.py",
    "bench_uet.py": "test_peers.py",
    "bench_training_shapes.py": "test_training_shapes.py",
    **{declared.file: "test_performance.py" for declared in performance.DECLARED.values()},
}
"""Benchmarks without a size that takes seconds, and the tests that run their parts; those of the performance page."""


def test_every_benchmark_has_a_small_run() -> None:
    assert sorted([*SMALL, *ELSEWHERE]) == [path.name for path in BENCHMARKS]
    folder = Path(__file__).parent
    declared = {each.file for each in performance.DECLARED.values()}
    for name, test in ELSEWHERE.items():
        assert name in declared or Path(name).stem in (folder / test).read_text(encoding="utf-8")


REAL_CLOCK = ("bench_mpi_over_tcp.py", "bench_tcp_linux.py", "bench_verbs_programs.py")
"""Those that make network namespaces or a lab of Mininet."""


def lacks_perftest() -> str:
    """Return why perftest cannot run in a lab's hosts; empty if it can."""
    return "apt install perftest" if shutil.which("ib_write_lat") is None else missing_because()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.mininet) if name in REAL_CLOCK else name for name in sorted(SMALL)],
)
def test_a_small_run_prints_figures(name: str, tmp_path: Path) -> None:
    if name.startswith("bench_mpi") and shutil.which("mpirun") is None:
        pytest.skip("mpirun is not installed (apt install openmpi-bin)")
    if name == "bench_verbs_programs.py" and (lacking := lacks_perftest()):
        pytest.skip(lacking)
    if name in REAL_CLOCK and os.geteuid() != 0:
        pytest.skip("needs root for network namespaces")
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / name, *shlex.split(SMALL[name])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d", done.stdout), "no figures"
