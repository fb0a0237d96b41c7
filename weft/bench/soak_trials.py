"""The trial that both tests of endurance read: a fabric of the real clock under load."""

from __future__ import annotations

from collections.abc import Sequence

from weft.bench.collectives import collective_item, members, require_two_hosts
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.soaking import Soak, read_soak
from weft.bench.variants import Changes
from weft.clocks.environment import require_mininet
from weft.errors import EnvironmentLacksError
from weft.trials import Procedure, Trial, TrialFailedError

COLLECTIVES = ("allreduce", "alltoall")
"""Collectives that run in turn."""
SIZE_BYTES = 64 * 2**10
_MOST_NODES = 96
"""Switches and hosts of a lab that a machine of two cores brings up within a minute."""
_DILATION = 1000
_SAMPLES = 60
_OF_THE_VIRTUAL_CLOCK: Changes = {"control": None, "fidelity": None, "switching": None}
"""Sections that the real clock refuses: it has the machine's own times."""


def soak_of(setup: Setup) -> Procedure[Soak]:
    """Yield the soak trial and return what it recorded.

    NotApplicableError: the machine has no real clock, or the fabric is too large for one.
    """
    require_two_hosts(setup)
    nodes = len(setup.subject.fabric.hosts) + len(setup.subject.fabric.switches)
    if nodes > _MOST_NODES:
        raise NotApplicableError(
            f"a lab of the real clock with {nodes} switches and hosts", valid=f"up to {_MOST_NODES}"
        )
    try:
        require_mininet()
    except EnvironmentLacksError as error:
        raise NotApplicableError(f"the real clock: {error}") from error
    seconds = setup.choose(smoke=10, standard=120, full=24 * 3600)
    ranks = members(setup, setup.subject.ranks)
    traffic = [{**collective_item(each, SIZE_BYTES, ranks), "dtype": "float32"} for each in COLLECTIVES]
    trial = setup.trial(f"soak, {seconds} s of the real clock", traffic, _OF_THE_VIRTUAL_CLOCK)
    tree = {**trial.tree, "clock": "real", "dilation": _DILATION}
    program = ("weft.bench.soaking", str(seconds), str(max(0.5, seconds / _SAMPLES)))
    runs = yield [Trial(trial.label, tree, program)]
    if runs[0].error:
        raise TrialFailedError(f"{trial.label}: {runs[0].error}")
    return read_soak(runs[0].folder)


def times_of(soak: Soak, item: int) -> Sequence[tuple[float, int]]:
    """Return when each run of an item began, in seconds, and its emulated time in picoseconds."""
    return [(run.begin_s, run.time_ps) for run in soak.runs if run.item == item]
