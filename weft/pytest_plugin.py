"""A pytest plugin: the fixture `fabric`, a running fabric for testing a user's P4, controller or traffic.

```
@pytest.mark.fabric(clock="virtual", planes=1, leaves=2, spines=1, hosts_per_leaf=1, p4="mine.p4")
def test_all_reduce(fabric):
    run = fabric.run(CollectiveRequest("allreduce", buffers, algorithm="ring"))
    assert run.result.ok
```

The mark takes the arguments of `weft.topologies.leaf_spine` and the options of `weft.Fabric`
(`weft.scenario.keywords.FabricMark`); `fabric_of` makes the same mark from typed arguments. Tests are skipped, with the
reason, if the machine cannot run a fabric; the virtual clock runs everywhere (docs/pytest.md).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pytest

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.scenario.keywords import FabricMark
    from weft.switch.coverage.model import ProgramCoverage

_COVERAGE: pytest.StashKey[list[ProgramCoverage]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the option `--weft-coverage`."""
    parser.addoption(
        "--weft-coverage",
        type=Path,
        metavar="DIR",
        help="Record which P4 code packets of the fixture `fabric` reach; DIR accumulates tests and runs.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark `fabric`."""
    config.addinivalue_line("markers", "fabric(**arguments): topology and options of the fixture `fabric`")


def fabric_of(**arguments: Unpack[FabricMark]) -> pytest.MarkDecorator:
    """Return the mark `fabric` with these arguments, which editors complete and type checkers check.

    ```
    @fabric_of(clock="virtual", leaves=2, spines=1, p4="mine.p4")
    def test_all_reduce(fabric): ...
    ```
    """
    mark: pytest.MarkDecorator = pytest.mark.fabric(**arguments)
    return mark


@pytest.fixture
def fabric(request: pytest.FixtureRequest) -> Iterator[Fabric]:
    """Yield the running fabric that the test's mark `fabric` describes; take it down after the test."""
    from weft import topologies
    from weft.clocks.environment import require_for
    from weft.errors import EnvironmentLacksError
    from weft.hints import did_you_mean
    from weft.run.fabric import Fabric
    from weft.scenario.options import FabricOptions

    mark = request.node.get_closest_marker("fabric")
    arguments = dict(mark.kwargs) if mark is not None else {}
    of_topology = inspect.signature(topologies.leaf_spine).parameters
    of_options = FabricOptions.model_fields
    for name in arguments:
        if name not in of_topology and name not in of_options:
            raise pytest.UsageError(f"mark fabric: unknown '{name}'; {did_you_mean(name, [*of_topology, *of_options])}")
    topology = topologies.leaf_spine(**{name: arguments.pop(name) for name in list(arguments) if name in of_topology})
    running = Fabric(topology, **arguments)
    try:
        require_for(topology, running.options)
    except EnvironmentLacksError as error:
        pytest.skip(str(error))
    with running:
        if request.config.getoption("--weft-coverage") is None:
            yield running
        else:
            yield from _covered(running, request.config)


def _covered(fabric: Fabric, config: pytest.Config) -> Iterator[Fabric]:
    from weft.errors import EnvironmentLacksError
    from weft.run.coverage import RunCoverage

    coverage = RunCoverage()
    try:
        coverage.begin(fabric)
    except EnvironmentLacksError as error:
        pytest.skip(str(error))
    yield fabric
    coverage.end(fabric)
    config.stash.setdefault(_COVERAGE, []).extend(coverage.found)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Add the code reached by the fabrics' packets to the directory of `--weft-coverage`."""
    found = session.config.stash.get(_COVERAGE, [])
    if found:
        from weft.report.coverage import add_coverage

        add_coverage(session.config.getoption("--weft-coverage"), found)
