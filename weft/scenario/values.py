"""What the values of a scenario file may be: rates, times, sizes with their units."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from traffic.class_reference import CLASS_REFERENCE
from traffic.patterns import MAX_FLOW_BYTES
from weft.units import parse_rate_bps, parse_size_bytes, parse_time_ps

RateBps = Annotated[int, BeforeValidator(parse_rate_bps), Field(gt=0)]
TimePs = Annotated[int, BeforeValidator(parse_time_ps), Field(ge=0)]
SizeBytes = Annotated[int, BeforeValidator(parse_size_bytes), Field(gt=0)]
FlowBytes = Annotated[SizeBytes, Field(le=MAX_FLOW_BYTES)]
ClassReference = Annotated[str, Field(pattern=CLASS_REFERENCE)]
Probability = Annotated[float, Field(ge=0.0, lt=1.0)]


class Section(BaseModel):
    """A mapping of a scenario file: no key that is not declared, nothing changed afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)
