"""Section of a scenario file on NCCL's protocols."""

from __future__ import annotations

from pydantic import model_validator

from weft.quantities.units import shortest_size
from weft.scenario.values import Section, SectionKeyError
from weft.traffic.protocols import ProtocolSettings


class ProtocolsSection(Section, ProtocolSettings):
    """Costs of NCCL's protocols, for collectives that name a `protocol`. A step's latency is paid from a message's
    arrival until the rank goes on, in addition to links and NICs; the defaults are NCCL's, of rings."""

    @model_validator(mode="after")
    def _check_order(self) -> ProtocolsSection:
        if self.ll_up_to is not None and self.ll128_up_to is not None and self.ll_up_to > self.ll128_up_to:
            most = shortest_size(self.ll128_up_to)
            raise SectionKeyError(
                "ll_up_to",
                f"{shortest_size(self.ll_up_to)} is above ll128_up_to, so no size takes LL128",
                valid=f"0 to {most}, or a larger ll128_up_to",
            )
        return self

    def settings(self) -> ProtocolSettings:
        """Return the hosts' settings."""
        return self.as_declared(ProtocolSettings)
