"""Lab 25's programs: perftest and Open MPI through an incast, and the counters that explain their rates."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from verbs_programs import needs_device
from weft.errors import EnvironmentLacksError
from weft.paths import LABS_DIRECTORY

MIB = 1 << 20
LINK_GBPS = 10
SENDERS = ["h1", "h2", "h3"]


@pytest.fixture(scope="module")
def programs():
    path = LABS_DIRECTORY / "25-real-programs" / "programs.py"
    spec = importlib.util.spec_from_file_location("programs_of_lab_25", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.mininet
@pytest.mark.slow
@needs_device
@pytest.mark.parametrize("control", ["fixed-window", "dcqcn", "hpcc"])
def test_programs_share_the_link_and_counters_say_why(control: str, programs) -> None:
    asked = programs.Asked(2 * MIB, dilation=300, timeout_s=200)
    found = programs.measured(control, asked, list(programs.PROGRAMS))
    if not found:
        pytest.skip("neither perftest nor Open MPI is installed")
    for seen in found.values():
        assert list(seen.gbps) == SENDERS
        assert all(0 < rate < LINK_GBPS for rate in seen.gbps.values())
        # Every mark makes the receiver's adapter send a CNP, and senders handle what is on its way no more.
        assert (seen.marked > 0, seen.cnps_sent > 0, seen.cnps_handled > 0) == 3 * (control == "dcqcn",)
        assert seen.cnps_handled == seen.cnps_sent
        # Only HPCC needs INT; each packet of data brings some.
        assert (seen.stamped >= 3 * 2 * MIB / 4096) == (control == "hpcc")
        assert control == "hpcc" or seen.stamped == 0


def test_what_is_missing_is_left_out(programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs.shutil, "which", lambda _: None)
    for run in programs.PROGRAMS.values():
        with pytest.raises(EnvironmentLacksError, match="missing"):
            run(None, None)
