"""Lab 22's real programs: Open MPI and Gloo over the lab's TCP, and how programs on hosts end."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from weft import Fabric
from weft.clocks.real.parallel_programs import open_mpi_command, outputs_of
from weft.errors import CheckFailedError, EnvironmentLacksError
from weft.paths import LABS_DIRECTORY

SIZES = (64, 4096)


@pytest.fixture(scope="module")
def real_programs():
    path = LABS_DIRECTORY / "22-communication-analysis" / "real_programs.py"
    spec = importlib.util.spec_from_file_location("real_programs_of_lab_22", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fabric(real_programs):
    with Fabric(real_programs.TOPOLOGY, clock="real", dilation=100) as running:
        yield running


@pytest.mark.mininet
@pytest.mark.slow
@pytest.mark.parametrize("way", ["Open MPI", "Gloo", "Weft's ring"])
def test_sums_of_all_sizes_are_numpys(way: str, real_programs, fabric) -> None:
    before = received_bytes(fabric)
    try:
        found = real_programs.WAYS[way](fabric, real_programs.Asked(SIZES, 2, 100, 200))
    except EnvironmentLacksError as error:
        pytest.skip(str(error))
    assert {size: len(times) for size, times in found.items()} == dict.fromkeys(SIZES, 2)
    assert all(time_s > 0 for times in found.values() for time_s in times)
    # They have crossed the fabric's spine, and not the machine's loopback.
    assert received_bytes(fabric) - before > 2 * sum(SIZES)


def received_bytes(fabric) -> int:
    ports = fabric.lab.controller.read_counters()["p0s0"].ports
    return sum(port.received.bytes for port in ports.values())


@pytest.mark.mininet
@pytest.mark.slow
def test_a_program_that_fails_or_hangs_ends_all(fabric, tmp_path: Path) -> None:
    left = tmp_path / "left"
    hanging = ["sh", "-c", f"trap 'touch {left}' TERM; sleep 1000"]
    with pytest.raises(CheckFailedError, match=r"h1: exit code 7: no such luck"):
        outputs_of(fabric.lab, {"h0": hanging, "h1": ["sh", "-c", "echo no such luck >&2; exit 7"]}, 60)
    with pytest.raises(CheckFailedError, match=r"programs have not ended in 0\.5 s on h0, h2"):
        outputs_of(fabric.lab, {"h0": hanging, "h1": ["true"], "h2": ["sleep", "1000"]}, 0.5)
    assert outputs_of(fabric.lab, {"h0": ["hostname"], "h3": ["hostname"]}, 60) == {
        "h0": "h0\n",
        "h3": "h3\n",
    }
    assert not left.exists(), "killed, not asked to end"


def test_what_rank_0_printed_is_checked(real_programs) -> None:
    asked = real_programs.Asked([64], 1, 10, 1)
    line = '{"size_bytes": 64, "ranks": %d, "times_s": [0.5], "wrong": %d}'
    assert real_programs.read_times({"h0": "a warning\n" + line % (8, 0)}, asked) == {64: [0.05]}
    for output, said in (
        (line % (8, 3), "64 B over 8 ranks: 3 elements are wrong"),
        (line % (4, 0), "64 B over 4 ranks"),
        ("", "no figures of some sizes"),
    ):
        with pytest.raises(CheckFailedError, match=said):
            real_programs.read_times({"h0": output}, asked)


def test_mpirun_keeps_to_the_plane() -> None:
    command = open_mpi_command(["h0", "h1"], ["program"], "10.1.0.0/16", {"coll": "tuned"})
    assert command[:4] == ["mpirun", "--allow-run-as-root", "--host", "h0,h1"]
    assert command[-1] == "program"
    for name, value in (("btl", "self,tcp"), ("oob_tcp_if_include", "10.1.0.0/16"), ("coll", "tuned")):
        place = command.index(name)
        assert command[place - 1 : place + 2] == ["--mca", name, value]


def test_a_table_is_what_lab_7_draws(real_programs, tmp_path: Path) -> None:
    path = LABS_DIRECTORY / "07-sweep" / "plot.py"
    spec = importlib.util.spec_from_file_location("plot_of_lab_7", path)
    plot = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plot)
    found = {"Open MPI": {64: [1e-6, 3e-6, 2e-6], 4096: [4e-6]}, "Weft's ring": {64: [5e-6], 4096: [6e-6]}}
    real_programs.write_table(found, tmp_path / "table.csv")
    curves = plot.curves(tmp_path / "table.csv")
    assert curves == {
        ("Open MPI", 8): [(64.0, 2.0), (4096.0, 4.0)],
        ("Weft's ring", 8): [(64.0, 5.0), (4096.0, 6.0)],
    }
    picture = "\n".join(plot.svg(plot.unique_curves(curves), "a < b"))
    assert "a &lt; b" in picture
    assert picture.count("<polyline") == 2
    assert len({part.split('"')[0] for part in picture.split('fill="none" stroke="')[1:]}) == 2
