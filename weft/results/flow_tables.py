"""Flows of a run, one row each: what they were, when they were done, how often their packets were sent again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.recording.reading import SavedTable
from weft.recording.schema import ColumnSchema
from weft.results.record_files import RecordFile, refuse_beyond
from weft.traffic.answers import EndedFlows
from weft.traffic.patterns import Flow

FlowTable = Mapping[str, npt.NDArray[Any]]
FLOW_COLUMNS = tuple(
    ColumnSchema(name, smallest=smallest)
    for name, smallest in (
        ("flow", -1),
        ("source", 0),
        ("destination", 0),
        ("plane", -1),
        ("size_bytes", -1),
        ("start_ps", 0),
        ("completion_ps", 0),
        ("retransmitted_packets", -1),
    )
)
"""Columns of `flow_table`; hosts by their ranks."""


def flow_table(flows: Sequence[Flow], records: EndedFlows) -> dict[str, npt.NDArray[Any]]:
    """Return columns of flows that have all ended; `records` come from `PreparedRuns.flow_records`.

    `start_ps` counts from the run's start, `completion_ps` from the flow's to its last acknowledgement.
    """
    return {
        "flow": np.asarray(records.flow, np.int64),
        "source": np.array([flow.source for flow in flows], np.int64),
        "destination": np.array([flow.destination for flow in flows], np.int64),
        "plane": np.array([flow.plane for flow in flows], np.int64),
        "size_bytes": np.array([flow.size_bytes for flow in flows], np.int64),
        "start_ps": np.array([flow.start_ps for flow in flows], np.int64),
        "completion_ps": np.asarray(records.finished_ps, np.int64) - np.asarray(records.started_ps, np.int64),
        "retransmitted_packets": np.asarray(records.retransmitted_packets, np.int64),
    }


@dataclass(frozen=True)
class FlowFile(RecordFile):
    """Files with a row per flow, NAME-NUMBER-flows.csv, one for each result of a run that has flows.

    All columns are numbers, `source` and `destination` among them.
    """

    records = "flows"

    def check(self, table: SavedTable, hosts: int) -> None:
        """Refuse a row with an end that is no host."""
        for end in ("source", "destination"):
            refuse_beyond(table, end, hosts, "host")
