"""Flows of a run, one row each: what they were, when they were done, how often their packets were sent again."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.system.writing import written_whole
from weft.traffic.patterns import Flow

FlowTable = Mapping[str, npt.NDArray[Any]]


def flow_table(flows: Sequence[Flow], records: Mapping[str, Sequence[int]]) -> dict[str, npt.NDArray[Any]]:
    """Return columns of flows that have all ended; `records` are those of `EndpointGroup.flow_records`.

    `start_ps` counts from the run's start, `completion_ps` from the flow's to its last acknowledgement.
    """
    finished_ps, started_ps = (np.asarray(records[name], np.int64) for name in ("finished_ps", "started_ps"))
    return {
        "flow": np.asarray(records["flow"], np.int64),
        "source": np.array([flow.source for flow in flows], np.int64),
        "destination": np.array([flow.destination for flow in flows], np.int64),
        "plane": np.array([flow.plane for flow in flows], np.int64),
        "size_bytes": np.array([flow.size_bytes for flow in flows], np.int64),
        "start_ps": np.array([flow.start_ps for flow in flows], np.int64),
        "completion_ps": finished_ps - started_ps,
        "retransmitted_packets": np.asarray(records["retransmitted_packets"], np.int64),
    }


def save_flow_table(table: FlowTable, path: Path) -> None:
    """Write a CSV file with a row per flow."""
    with written_whole(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*(column.tolist() for column in table.values()), strict=True))
