"""Runs in which switches get code for the contents of their tables, and lose it, write the same files as others."""

from weakref import WeakValueDictionary

import pytest

from tests.weft.test_virtual_partitions import SCENARIO, files
from weft.clocks.virtual import specialised_code
from weft.run.runner import Captures, run_scenario
from weft.scenario import parse_scenario
from weft.switch.lowering import jit

NEVER = 2**62


def written(folder, scenario):
    """Return the files of a run, and how many switches took specialised code."""
    taken = []
    plain = specialised_code.specialise

    def counted(switches, **options):
        taken.append(plain(switches, **options))
        return taken[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(specialised_code, "specialise", counted)
        result = run_scenario(parse_scenario(scenario), captures=Captures(folder / "captures", ("p0l0", "p1s1")))
    assert result.ok
    result.save(folder)
    return files(folder), sum(taken)


# Switches that lose links are written to again and again; jobs in the network fill tables that were empty.
FAILURES = SCENARIO | {
    "events": [
        {"link": "p0l0<->p0s0", "state": "down", "at": "300us"},
        {"link": "p0l0<->p0s0", "state": "up", "at": "600us"},
        {"link": "p1l1<->p1s1", "state": "down", "at": "900us"},
    ]
}
IN_NETWORK = {"collective": "allreduce", "algorithms": ["in-network"], "sizes": ["48KiB"], "dtype": "int32"}
JOBS = SCENARIO | {"traffic": [*SCENARIO["traffic"], IN_NETWORK]}


@pytest.mark.parametrize("scenario", [SCENARIO, FAILURES, JOBS])
def test_files_do_not_depend_on_it(tmp_path, monkeypatch, scenario):
    monkeypatch.setattr(specialised_code, "FIRST_LOOK_EVENTS", NEVER)
    plain, taken = written(tmp_path / "plain", scenario)
    assert taken == 0
    for every in (500, 5000):
        monkeypatch.setattr(specialised_code, "FIRST_LOOK_EVENTS", every)
        monkeypatch.setattr(specialised_code, "EVENTS_WORTH_COMPILING", every)
        specialised, taken = written(tmp_path / str(every), scenario)
        assert taken >= 4
        assert specialised == plain


def test_a_short_run_compiles_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(specialised_code, "FIRST_LOOK_EVENTS", 500)
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(jit, "_compiled", WeakValueDictionary())  # no code of earlier tests
    _, taken = written(tmp_path / "run", SCENARIO)
    assert taken == 0
