"""The suites: every test of the drafts, and every KPI with the tests that measure it."""

from __future__ import annotations

import pytest

from weft.bench.suites import SUITES
from weft.errors import BadInputError

SECTIONS = {
    "training": {5: 3, 6: 7, 7: 4, 8: 4, 9: 4, 10: 3, 11: 3, 12: 2},
    "inference": {5: 4, 6: 4, 7: 4, 8: 4, 9: 4, 10: 4, 11: 3, 12: 3, 13: 3},
}
"""Tests of each category of the draft."""


@pytest.mark.parametrize("name", SECTIONS)
def test_every_test_of_the_draft_is_there(name: str) -> None:
    expected = [f"{category}.{number + 1}" for category, count in SECTIONS[name].items() for number in range(count)]
    assert [test.section for test in SUITES[name].tests] == expected


@pytest.mark.parametrize("name", SECTIONS)
def test_names_and_titles_are_each_tests_own(name: str) -> None:
    tests = SUITES[name].tests
    for values in ([test.name for test in tests], [test.title for test in tests], [test.objective for test in tests]):
        assert len(set(values)) == len(tests)
        assert all(values)


@pytest.mark.parametrize("name", SECTIONS)
def test_kpis_are_of_tests_that_are_there(name: str) -> None:
    sections = {test.section for test in SUITES[name].tests}
    for kpi in SUITES[name].kpis:
        assert set(kpi.sections) <= sections
    assert len({kpi.name for kpi in SUITES[name].kpis}) == len(SUITES[name].kpis)


def test_tests_are_chosen_by_name_section_and_category() -> None:
    suite = SUITES["training"]
    assert [test.section for test in suite.chosen(["7.2", "baseline-throughput"])] == ["5.1", "7.2"]
    assert [test.section for test in suite.chosen(["8"])] == ["8.1", "8.2", "8.3", "8.4"]
    assert suite.chosen([]) == suite.tests
    with pytest.raises(BadInputError, match="flowlet"):
        suite.chosen(["flowlets"])
