"""Programs of other projects, which some commands, tests or benchmarks run."""

from __future__ import annotations

from weft.doctor.capability import Capability, Finding, modules, program

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def _mpi() -> Finding:
    launcher = program("mpirun")()
    return modules("mpi4py")() if launcher.present else launcher


CAPABILITIES = [
    Capability(
        name="C++ compiler",
        purpose="building the engine",
        look=program("c++", "g++", "clang++"),
        cost="the engine cannot be built here; a built one runs",
        install="apt install g++ python3-dev",
    ),
    Capability(
        name="MPI",
        purpose="mpirun -n N weft run, also on several machines",
        look=_mpi,
        cost="runs of one process; --workers uses its machine's cores",
        install="apt install openmpi-bin python3-mpi4py, and make .venv with --system-site-packages",
    ),
    Capability(
        name="p4c",
        purpose="--compiler p4c",
        look=program("p4c-bm2-ss"),
        cost="programs are compiled by Weft's compiler only",
        install="p4lang's package p4lang-p4c",
    ),
    Capability(
        name="tshark",
        purpose="docs/wireshark/weft.lua without a window, and its tests",
        look=program("tshark"),
        cost="captures are read elsewhere",
        install="apt install tshark",
    ),
    Capability(
        name="browser",
        purpose="tests of pages of runs and labs",
        look=program(*BROWSERS),
        cost="those tests are skipped; pages open in any browser elsewhere",
        install="apt install chromium (Debian), or any of chromium-browser and google-chrome",
    ),
    Capability(
        name="Prometheus",
        purpose="watching weft lab --metrics (docs/metrics.md)",
        look=program("prometheus"),
        cost="metrics are served, and nothing here collects them",
        install="apt install prometheus",
    ),
    Capability(
        name="Valgrind",
        purpose="make bench-gate, which counts instructions",
        look=program("valgrind"),
        cost="no make bench-gate",
        install="apt install valgrind",
    ),
]
