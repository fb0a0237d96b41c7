"""`--cpu-times=FILE`: the processor time of each test, so that you can see where a stage's time goes.

Wall time does not show it: tests share processors with one another, and labs wait most of theirs.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import pytest


def processor_time_s() -> float:
    """Return the processor time of this process and of its children that have ended and were waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Meter:
    """Where tests run: notes in each report the processor time since the one before.

    A fixture's time counts for the test that first asks for it and for the last one that used it.
    """

    def __init__(self) -> None:
        self._before_s = processor_time_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._before_s = processor_time_s()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now_s = processor_time_s()
        report.processor_time_s = now_s - self._before_s  # pytest-xdist passes on what a report has
        self._before_s = now_s
        return report


class Table:
    """Where tests are reported: writes a line for each test as it ends, so an interrupted run leaves its part."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", buffering=1)
        self._file.write("processor_s\twall_s\ttest\n")
        self._sums: dict[str, tuple[float, float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        processor_s, wall_s = self._sums.pop(report.nodeid, (0.0, 0.0))
        processor_s += getattr(report, "processor_time_s", 0.0)  # a test that crashed its worker has none
        wall_s += report.duration
        if report.when == "teardown":
            self._file.write(f"{processor_s:.2f}\t{wall_s:.2f}\t{report.nodeid}\n")
        else:
            self._sums[report.nodeid] = processor_s, wall_s

    def pytest_unconfigure(self) -> None:
        self._file.close()


def add_option(parser: pytest.Parser) -> None:
    """Declare `--cpu-times=FILE`."""
    parser.addoption(
        "--cpu-times",
        type=Path,
        metavar="FILE",
        help="write each test's processor time and wall time to FILE",
    )


def register(config: pytest.Config) -> None:
    """Measure, if `--cpu-times` is given."""
    path: Path | None = config.getoption("cpu_times")
    if path is None:
        return
    config.pluginmanager.register(Meter())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table(path))
