"""A pytest plugin: the fixture `fabric`, a running fabric for a test of a user's own P4, controller or traffic.

```
@pytest.mark.fabric(clock="virtual", planes=1, leaves=2, spines=1, hosts_per_leaf=1, p4="mine.p4")
def test_all_reduce(fabric):
    run = fabric.collective("allreduce", buffers, algorithm="ring")
    assert run.result.ok
```

The mark's arguments are those of `weft.topologies.leaf_spine` and the fields of `weft.scenario.options.FabricOptions`;
`fabric_of` makes the same mark with all of them spelled out. Tests are
skipped, with the reason, where the machine cannot run a fabric; the virtual clock runs
everywhere (docs/pytest.md).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from weft.run.fabric import Fabric
    from weft.scenario import (
        BufferSection,
        ControlSection,
        CreditsSection,
        EcnSection,
        FaultsSection,
        LinkEventSection,
        NicSection,
        ObserveSection,
        PfcSection,
        SchedulingSection,
        SwitchingSection,
        TransportSection,
    )


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark."""
    config.addinivalue_line("markers", "fabric(**arguments): topology and options of the fixture `fabric`")


def fabric_of(
    *,
    planes: int | None = None,
    leaves: int | None = None,
    spines: int | None = None,
    hosts_per_leaf: int | None = None,
    host_rate_bps: float | None = None,
    fabric_rate_bps: float | None = None,
    oversubscription: float | None = None,
    delay_ps: int | None = None,
    queue_capacity_bytes: int | None = None,
    clock: Literal["real", "virtual"] | None = None,
    target: Literal["embedded", "bmv2"] | None = None,
    links: Literal["veth", "internal"] | None = None,
    grpc: Literal["unix", "tcp"] | None = None,
    ip_version: Literal[4, 6] | None = None,
    dilation: float | None = None,
    seed: int | None = None,
    workers: int | None = None,
    p4: str | Path | None = None,
    compiler: Literal["embedded", "p4c"] | None = None,
    mtu_bytes: Literal[256, 512, 1024, 2048, 4096] | None = None,
    int_telemetry: bool | None = None,
    slots: int | None = None,
    faults: FaultsSection | None = None,
    ecn: EcnSection | None = None,
    control: ControlSection | None = None,
    transport: TransportSection | None = None,
    nic: NicSection | None = None,
    buffer: BufferSection | None = None,
    scheduling: SchedulingSection | None = None,
    pfc: PfcSection | None = None,
    credits: CreditsSection | None = None,
    switching: SwitchingSection | None = None,
    observe: ObserveSection | None = None,
    events: list[LinkEventSection] | None = None,
) -> pytest.MarkDecorator:
    """Return the mark `fabric` with these arguments, spelled out for editors and type checkers.

    ```
    @fabric_of(clock="virtual", leaves=2, spines=1, p4="mine.p4")
    def test_all_reduce(fabric): ...
    ```

    None stands for the default of `weft.topologies.leaf_spine` or of `weft.Fabric`.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    mark: pytest.MarkDecorator = pytest.mark.fabric(**given)
    return mark


@pytest.fixture
def fabric(request: pytest.FixtureRequest) -> Iterator[Fabric]:
    """Return a running fabric, as the test's mark `fabric` describes it; it is taken down after the test."""
    from weft import topologies
    from weft.clocks.environment import require_for
    from weft.errors import EnvironmentLacksError, did_you_mean
    from weft.run.fabric import Fabric
    from weft.scenario.options import FabricOptions

    mark = request.node.get_closest_marker("fabric")
    arguments = dict(mark.kwargs) if mark is not None else {}
    of_topology = inspect.signature(topologies.leaf_spine).parameters
    of_options = FabricOptions.__dataclass_fields__
    for name in arguments:
        if name not in of_topology and name not in of_options:
            raise pytest.UsageError(
                f"mark fabric: unknown '{name}'; {did_you_mean(name, [*of_topology, *of_options])}"
            )
    topology = topologies.leaf_spine(
        **{name: arguments.pop(name) for name in list(arguments) if name in of_topology}
    )
    running = Fabric(topology, **arguments)
    try:
        require_for(topology, running.options)
    except EnvironmentLacksError as error:
        pytest.skip(str(error))
    with running:
        yield running
