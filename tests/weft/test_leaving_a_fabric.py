"""A fabric releases the process's resources when it is left, not when the garbage collector runs."""

import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.refusals import refused
from weft import topologies
from weft.errors import WeftError
from weft.paths import ROOT
from weft.run.collectives import CollectiveRequest
from weft.run.fabric import Fabric
from weft.scenario import TransportSection

TOPOLOGY = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)
MINE = """\
import weft

class Mine(weft.CongestionControl):
    def __init__(self, path, fail_at=None):
        super().__init__(path)
        self.fail_at, self.count = fail_at, 0

    def window_bytes(self):
        return 20000

    def on_acknowledgement(self, event):
        self.count += 1
        if self.count == self.fail_at:
            raise RuntimeError(f"acknowledgement {self.count}")

class Paths(weft.PathChoice):
    def entropy(self, now_ps, sequence, retransmission):
        return sequence % 100
"""


def all_reduce(fabric: Fabric, algorithm: str, timeout_s: float = 300.0) -> None:
    fabric.run(CollectiveRequest("allreduce", [np.ones(50_000, np.int32)] * 4, algorithm), timeout_s=timeout_s)


def summarised(fabric: Fabric) -> None:
    all_reduce(fabric, "in-network")
    fabric.summary()


def interrupted(fabric: Fabric) -> None:
    fabric.lab.partitions.schedule_at(2_000_000, interrupt)
    all_reduce(fabric, "ring")


def interrupt() -> None:
    raise KeyboardInterrupt


USES: dict[str, Callable[[Fabric], object]] = {
    "nothing": lambda fabric: None,
    "ring": lambda fabric: all_reduce(fabric, "ring"),
    "in the network": lambda fabric: all_reduce(fabric, "in-network"),
    "permutation": lambda fabric: fabric.permutation(100_000),
    "workload": lambda fabric: fabric.workload("websearch", 0.3, 100_000_000),
    "link event": lambda fabric: fabric.schedule_link("p0l0", "p0s0", "down", 10**9),
    "summary": summarised,
    "timed out": lambda fabric: all_reduce(fabric, "ring", 1e-6),
    "timed out in the network": lambda fabric: all_reduce(fabric, "in-network", 1e-6),
    "interrupted": interrupted,
}


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def parts(fabric: Fabric) -> list[weakref.ref]:
    """Return weak references to the parts that hold memory and file descriptors."""
    lab = fabric.lab
    switches = [wired.switch for wired in lab.switches.switches.values()]
    natives = [switch.native for switch in switches]
    hosts = [endpoint.host for endpoint in lab._endpoints]
    whole = [lab.partitions, lab.switches, *lab.engines.values(), *switches, *natives, *hosts]
    return [weakref.ref(part) for part in whole]


def use_and_leave(use: Callable[[Fabric], object], **options: object) -> tuple[list[weakref.ref], object]:
    """Use a fabric; return its parts, and what a caller may keep: the fabric, and the error or None."""
    fabric, error = Fabric(TOPOLOGY, clock="virtual", **options), None
    try:
        with fabric:
            inside = parts(fabric)
            use(fabric)
    except (WeftError, KeyboardInterrupt) as failure:
        error = failure
    return inside, (fabric, error)


def use_and_forget(use: Callable[[Fabric], object]) -> None:
    """Use a fabric and keep nothing; a local variable with the error would keep this frame by its traceback."""
    with suppress(WeftError, KeyboardInterrupt), Fabric(TOPOLOGY, clock="virtual") as fabric:
        use(fabric)


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_leaving_frees_everything_at_once(use: Callable[[Fabric], object]) -> None:
    use_and_leave(USES["nothing"])  # what is made once and kept, such as the compiled program
    before = descriptors()
    inside, kept = use_and_leave(use)
    assert [part() for part in inside if part() is not None] == []
    assert descriptors() == before
    assert kept is not None


@pytest.mark.parametrize("fail_at", [None, 20])
@pytest.mark.parametrize("use", [USES["permutation"], USES["workload"]], ids=["permutation", "workload"])
def test_classes_of_users_keep_no_fabric(use: Callable[[Fabric], object], fail_at: int | None, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE, encoding="utf-8")
    transport = TransportSection(
        congestion_control=f"{file}:Mine",
        parameters={"fail_at": fail_at},
        retransmission="selective-repeat",
        path=f"{file}:Paths",
    )
    before = descriptors()
    inside, (_, error) = use_and_leave(use, transport=transport)
    assert (error is None) == (fail_at is None), error
    assert [part() for part in inside if part() is not None] == []
    assert descriptors() == before


def test_a_fabric_that_was_left_says_so() -> None:
    with Fabric(TOPOLOGY, clock="virtual") as fabric:
        pass
    with refused(WeftError, problem="was left"):
        all_reduce(fabric, "ring")
    with refused(WeftError, problem="was left"):
        fabric.summary()


@pytest.mark.slow
def test_hundreds_of_fabrics_in_one_process_stay_flat(tmp_path: Path) -> None:
    """In a process of its own, with a cache: without one, the collector has the compiler's trees to free."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "WEFT_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, __file__], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def stay_flat() -> None:
    """Memory may vary by what the allocator keeps; 300 leaked fabrics would take gigabytes."""
    for use in USES.values():
        use_and_forget(use)
    before, memory_before = descriptors(), resident_bytes()
    for _ in range(30):
        for use in USES.values():
            use_and_forget(use)
    assert descriptors() == before
    assert resident_bytes() - memory_before < 32 * 2**20


def resident_bytes() -> int:
    fields = Path("/proc/self/statm").read_text(encoding="ascii").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    gc.disable()
    stay_flat()
