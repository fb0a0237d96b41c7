"""Section of a scenario file on the search for noisy parts (docs/health.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from weft.controller.noise.limits import MOST_SLOW, NoiseLimits
from weft.controller.noise.watch import NoiseSettings
from weft.quantities.definitions import TIME, number
from weft.quantities.units import PS_PER_US
from weft.scenario.places import KeyProblem
from weft.scenario.values import Section
from weft.topologies import FabricSpec

if TYPE_CHECKING:
    from weft.scenario.options import FabricOptions


class HealthSection(Section):
    """Noisy links, NICs and hosts are found by comparing counters with their peers', and taken out of use where
    enough of the fabric is left (docs/health.md). Without this section nothing is looked for."""

    interval: Annotated[int, TIME.between(PS_PER_US, example="100us")] = NoiseSettings.interval_ps
    """How often counters are read."""
    act: bool = NoiseSettings.acts
    """Noisy parts are taken out of use; `false` only reports them."""
    false_findings: Annotated[float, number(0, 1, above=True, example="1e-6")] = NoiseLimits.false_findings
    """Probability that statistical tests find anything in a healthy run, at most."""
    least_loss: Annotated[float, number(0, 1, above=True, example="0.001")] = NoiseLimits.least_loss
    """Share of lost packets below which a link is left alone, whatever its peers lose."""
    slow: Annotated[float, number(0, MOST_SLOW, above=True, example="0.8")] = NoiseLimits.slow
    """Share of its rate below which a port with waiting packets is slow."""
    straggler: Annotated[float, number(1, 1000, above=True, example="1.2")] = NoiseLimits.straggler
    """Times the computing time of its peers from which a host is slow."""

    def settings(self) -> NoiseSettings:
        """Return what the controller takes."""
        limits = NoiseLimits(self.false_findings, self.least_loss, self.slow, self.straggler)
        return NoiseSettings(limits, self.interval, self.act)


def health_settings(options: FabricOptions) -> NoiseSettings | None:
    """Return the settings of a scenario's section; None without one."""
    section = options.health
    return section.settings() if isinstance(section, HealthSection) else None


def check_health(fabric: FabricSpec, options: FabricOptions) -> None:
    """Check that parts can be compared. Raises KeyProblem."""
    if options.clock == "real":
        raise KeyProblem("health", "does not go with clock: real, where packets are lost and wait in sockets, too")
    if options.target == "bmv2":
        raise KeyProblem("health", "does not go with target: bmv2, whose ports say nothing of their queues")
    if fabric.circuits is not None and len(fabric.circuits.names) > 1:
        raise KeyProblem("health", "does not go with circuits that may change", valid="one configuration")
