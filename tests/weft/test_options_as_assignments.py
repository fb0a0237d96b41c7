"""Options of a run, as the printed `weft trace` command says them again."""

import pytest

from weft.commands.scenario_options import as_assignments, assignments_of
from weft.scenario.parsing import Change


def changes(words: list[str]) -> list[Change]:
    assert words[::2] == ["--set"] * (len(words) // 2)
    return assignments_of("--set", words[1::2])


@pytest.mark.parametrize("link", ["p0l0-p0s1", "*-p0s0", "p0s1-*"])
def test_links_that_are_down_are_yaml(link: str) -> None:
    (change,) = changes(as_assignments({"links_down": [link]}, clock="virtual"))
    assert (change.key, change.value) == ("events[]", {"link": link, "state": "down"})


@pytest.mark.parametrize(("option", "clock"), [("virtual", "virtual"), ("real", "real"), (None, "real")])
def test_what_traces_runs_under_the_virtual_clock(option: str | None, clock: str) -> None:
    """Also where the scenario names the real one, and an option has run it under the virtual one."""
    (change,) = changes(as_assignments({"clock": option}, clock=clock))
    assert (change.key, change.value) == ("clock", "virtual")
    assert as_assignments({"clock": None}, clock="virtual") == []
