"""Section of a scenario file on NCCL's protocols."""

from __future__ import annotations

from weft.scenario.values import Section
from weft.traffic.protocols import ProtocolSettings


class ProtocolsSection(Section, ProtocolSettings):
    """Costs of NCCL's protocols, for collectives that name a `protocol`. A step's latency is paid from a message's
    arrival until the rank goes on, in addition to links and NICs; the defaults are NCCL's, of rings."""

    def settings(self) -> ProtocolSettings:
        """Return the hosts' settings."""
        return self.as_declared(ProtocolSettings)
