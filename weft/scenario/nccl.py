"""Section of a scenario file on what NCCL's model of times depends on."""

from __future__ import annotations

from pydantic import model_validator

from weft.scenario.values import Section, SectionKeyError
from weft.traffic.nccl import NcclSettings


class NcclSection(Section, NcclSettings):
    """Inputs of NCCL's own choice of algorithms (`algorithms: [nccl]`) that the fabric does not give."""

    @model_validator(mode="after")
    def _check_channels(self) -> NcclSection:
        for given, other in (("channels", "channel_rate"), ("channel_rate", "channels")):
            if getattr(self, given) is not None and getattr(self, other) is None:
                raise SectionKeyError(other, f"missing, with {given}", valid="both of them, or neither")
        return self

    def settings(self) -> NcclSettings:
        """Return the model's settings."""
        return self.as_declared(NcclSettings)
