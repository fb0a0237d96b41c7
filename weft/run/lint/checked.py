"""Findings in a scenario that is not run: what the rules find, and what `weft run` refuses."""

from __future__ import annotations

from collections.abc import Callable

from weft.clocks.lab import make_lab
from weft.errors import WeftError
from weft.run.lint import Finding, findings_of
from weft.run.spec import run_spec
from weft.scenario import KeyProblem, Places, Scenario
from weft.topologies import TopologyError

REFUSED = "refused"
"""The name of what no rule finds, because `weft run` refuses it."""


def findings_in(load: Callable[[], Scenario]) -> list[Finding]:
    """Return what is wrong with a scenario, with places; nothing is built, and the machine is not looked at.

    A scenario that is refused has one finding: it ends at the first.

    Args:
        load: returns the scenario.
    """
    places: Places | None = None
    try:
        scenario = load()
        places = scenario.places
        spec = run_spec(scenario)
        # A plan of the virtual clock needs neither root nor Mininet.
        lab = make_lab(spec.fabric, spec.options.changed(clock="virtual"))
        lab.require_plan()
        return [finding.located(places) for finding in findings_of(spec, lab.switch_configs)]
    except KeyProblem as problem:
        found = Finding(REFUSED, problem.key, problem.problem, instead=_ways(problem))
        return [found if places is None else found.located(places)]
    except (WeftError, TopologyError) as problem:
        return [Finding(REFUSED, "", problem.problem, instead=_ways(problem), place=problem.place)]


def _ways(problem: WeftError | TopologyError) -> str:
    return "; ".join(part for part in (f"valid: {problem.valid}" if problem.valid else "", problem.hint) if part)
