"""Data of a job that Chakra cannot express: Weft writes it as extra attributes of a file and its nodes."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from weft.hints import did_you_mean
from weft.jobs.traces.assembling import JobAssembler
from weft.jobs.traces.errors import TraceError
from weft.quantities.json_problems import described
from weft.quantities.units import shown
from weft.traffic.aggregation_format import Operation
from weft.traffic.data_types import DataType
from weft.traffic.jobs import CollectiveCall

FILE_ATTRIBUTE = "weft"
"""Attribute of a file's GlobalMetadata: `RankData` as JSON."""
DURATION = "weft_duration_ps"
STREAM = "weft_stream"
CATEGORY = "weft_category"
CALL = "weft_call"
"""Attribute with the index in `JobData.calls`."""
TIMER = "weft_timer"
AFTER, AFTER_START = "weft_after", "weft_after_start"
"""Attributes with the dependencies of a node that follows another's start, which Chakra cannot express."""
NODE_ATTRIBUTES = frozenset((DURATION, STREAM, CATEGORY, CALL, TIMER, AFTER, AFTER_START))


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class CallData(_Strict):
    """A `CollectiveCall` as JSON data."""

    collective: str = Field(max_length=4096)
    size_bytes: int = Field(ge=0, lt=1 << 46)
    algorithm: str = Field("", max_length=100)
    dtype: DataType = DataType.FLOAT32
    operation: str = Operation.SUM.name
    root: int = 0

    @classmethod
    def of(cls, call: CollectiveCall) -> CallData:
        """Return the data of a call."""
        data = vars(call) | {"operation": call.operation.name}
        # No trace has these: they say what is communicated, not how.
        del data["protocol"], data["clear_to_send"]
        return cls(**data)

    def call(self) -> CollectiveCall:
        """Return the call. Raises ValueError for an unknown operation."""
        if self.operation not in Operation.__members__:
            raise ValueError(
                f"no operation {shown(self.operation)}; {did_you_mean(self.operation, Operation.__members__)}"
            )
        return CollectiveCall(**{**dict(self), "operation": Operation[self.operation]})


class JobData(_Strict):
    """Data of the whole job, in rank 0's file."""

    name: str = Field(max_length=4096)
    group_names: list[str]
    calls: list[CallData]
    traffic_classes: dict[str, int]


class RankData(_Strict):
    """Data of one rank."""

    version: Literal[1] = 1
    peers: list[int]
    groups: list[int]
    compute_scale: float = Field(1.0, gt=0, allow_inf_nan=False)
    communication_share: float = Field(0.0, ge=0, lt=1, allow_inf_nan=False)
    job: JobData | None = None


def rank_data(text: str, source: str) -> RankData:
    """Return the data in a file's attribute. Raises TraceError if it does not have Weft's format."""
    try:
        return RankData.model_validate_json(text)
    except ValidationError as error:
        raise TraceError(f"attribute '{FILE_ATTRIBUTE}': {described(error.errors()[0])}", place=source) from None


def apply_to_job(data: JobData, job: JobAssembler, source: str) -> None:
    """Set a job's name, traffic classes and calls from the data. Raises TraceError for invalid calls."""
    job.name = data.name
    job.traffic_classes = dict(data.traffic_classes)
    try:
        job.calls = [each.call() for each in data.calls]
    except ValueError as error:
        raise TraceError(f"attribute '{FILE_ATTRIBUTE}': job.calls: {error}", place=source) from None
