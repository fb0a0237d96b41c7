"""Weft on a work: the whole command `weft run`, as peers are measured."""

from __future__ import annotations

import csv
import json
import os
import sys
from pathlib import Path

import numpy as np
import yaml

from peers.commands import measured
from peers.peer import LIMIT_S, PeerRun
from peers.work import Work
from weft.paths import ROOT

_FLOWS = "pattern-0-flows.csv"


def run_weft(work: Work, folder: Path, limit_s: float = LIMIT_S) -> PeerRun:
    """Run `weft run` on a work; its bytecode is kept in the folder for further runs.

    `completion_ps` is from a flow's start to its last acknowledgement; it is None where the flows run as a collective.
    Raises RuntimeError if the run fails or a check of its results does, TimeoutError as `measured`.
    """
    flows, file, results = folder / "flows.csv", folder / "peers.yaml", folder / "results"
    flows.write_text(work.flow_csv(), encoding="utf-8")
    file.write_text(yaml.safe_dump(work.tree(flows)), encoding="utf-8")
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
    }
    command = [sys.executable, "-m", "weft", "run", str(file), "--out", str(results)]
    spent, printed = measured(command, folder, environment, limit_s)
    found = json.loads((results / "results.json").read_text(encoding="utf-8"))
    if not found["ok"]:
        raise RuntimeError(f"{work.title}: {results} has a failed check")
    end_ps = max(phase["end_ps"] for phase in found["phases"])
    if work.traffic is not None:
        return PeerRun(spent, end_ps, None, printed)
    with (results / _FLOWS).open(encoding="utf-8", newline="") as table:
        ended = {int(row["flow"]): int(row["completion_ps"]) for row in csv.DictReader(table)}
    return PeerRun(spent, end_ps, np.array([ended[number] for number in range(len(work.flows))], np.int64), printed)
