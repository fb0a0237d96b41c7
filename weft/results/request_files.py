"""Requests of inference: files next to results.json with a row for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.quantities.arrays import Integers
from weft.recording.reading import SavedTable
from weft.recording.schema import ColumnSchema, TableSchema
from weft.recording.tables import Table, integers_of
from weft.results.record_files import RecordFile

STAGES = ("prefill_queue", "prefill", "transfer_ideal", "transfer_contention", "decode_queue", "decode")
"""Stages of a request's time, in order; their sum is the time from its arrival to its last token."""
REQUESTS = TableSchema(
    tuple(
        ColumnSchema(name, smallest=smallest)
        for name, smallest in (
            *((name, 0) for name in ("request", "prefill_instance", "decode_instance", "arrival_ps")),
            *((name, 1) for name in ("prompt_tokens", "output_tokens")),
            *((f"{stage}_ps", 0) for stage in STAGES),
            ("first_token_ps", 0),
            ("per_token_ps", -1),
            ("end_to_end_ps", 0),
        )
    )
)
"""Times but for the arrival since a request's own; -1 per token where there is no second one."""


@dataclass(frozen=True)
class RequestFile(RecordFile):
    """Files with a row per request, NAME-NUMBER-requests.csv."""

    records = "requests"

    schema: TableSchema = REQUESTS

    def check(self, table: SavedTable, hosts: int) -> None:
        """Refuse a row with stages that do not add up."""
        off = np.flatnonzero(stage_sums(table.columns) != integers_of(table.columns, "end_to_end_ps"))
        if len(off):
            table.refuse(int(off[0]), "end_to_end_ps", "is not the sum of the stages")


def stage_sums(table: Table) -> Integers:
    """Return the time that a request's stages take together."""
    return np.asarray(sum(integers_of(table, f"{stage}_ps") for stage in STAGES), np.int64)
