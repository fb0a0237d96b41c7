"""Llama 3: the interruptions of 54 days on 16,384 accelerators, and the effective training time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from weft.goodput import cluster_of, outcome_of
from weft.goodput import report as parts
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.quantities.definitions import UNITS_REQUIRED
from weft.scenario.cluster import ClusterSection
from weft.topologies import leaf_spine
from weft.trials import Procedure

_HOURS = 54 * 24
_ACCELERATORS = 16_384
# Table 5 of the paper, causes with the same consequence together.
_COUNTS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "gpu": (148, {"repair": "2d"}),
    "gpu-memory": (72 + 19, {"repair": "2d"}),
    "gpu-other": (17 + 6, {"repair": "2d"}),
    "software": (54 + 7 + 2, {"effect": "restart"}),
    "network": (35, {"effect": "restart"}),
    "maintenance": (32, {"repair": "4h"}),
    "host-parts": (7 + 3 + 3 + 2 + 2 + 2 + 2, {"repair": "2d"}),
    "silent-corruption": (6, {"effect": "corrupt", "noticed_after": "1h", "repair": "2d"}),
}
_PUBLISHED = 419
_HISTORIES = {Scale.FULL: 200, Scale.REDUCED: 10}
_PLACE = "section 3.3.4"


_CLUSTER: Mapping[str, Any] = {
    "accelerators": _ACCELERATORS,
    "accelerators_per_host": 8,
    "spares": 32,
    "duration": f"{_HOURS}h",
    "failures": [
        {"name": name, "part": "cluster", "mtbf": f"{_HOURS * 3600 / count:.6f}s", **keys}
        for name, (count, keys) in _COUNTS.items()
    ],
    "checkpoint": {"interval": "10min", "cost": "10s"},
    "restart": {"detection": "2min", "start": "8min"},
}


def _procedure(setting: Setting) -> Procedure[Findings]:
    yield []  # nothing is sent
    section = ClusterSection.model_validate(_CLUSTER, context={UNITS_REQUIRED: True})
    fabric = leaf_spine(planes=1, leaves=1, spines=0, hosts_per_leaf=2, host_rate_bps=400 * 10**9)
    found = outcome_of(cluster_of(section, fabric), 1, _HISTORIES[setting.scale], with_intervals=True)
    return Findings(
        {"interruptions": found.interruptions.mean, "effective training time": found.goodput.mean},
        tables=[parts.spent_table(found), parts.failures_table(found)],
        figures=[parts.intervals_figure(found)],
    )


KIND = Study(
    name="llama-2024",
    title="The Llama 3 Herd of Models",
    authors="Grattafiori et al.",
    venue="arXiv 2407.21783,",
    year=2024,
    measured=(
        "54 days of pre-training on 16,384 accelerators: 419 interruptions that nobody had planned, most by "
        "accelerators and their memory (table 5), and an effective training time of more than 90 %."
    ),
    run=(
        "Histories with failures at those rates. The paper publishes neither the checkpoint interval nor how long a "
        "restart takes: here a checkpoint each 10 minutes takes 10 s, detection 2 minutes, a start 8."
    ),
    reduced="10 histories instead of 200.",
    procedure=_procedure,
    values=[
        Value(
            "interruptions",
            "interruptions in 54 days, by rates that follow from it",
            float(_PUBLISHED),
            "",
            "table 5",
            0.05,
            when=(),
        ),
    ],
    shapes=[
        Shape(
            "more than 90 % of the time is effective training",
            _PLACE,
            lambda measured: measured["effective training time"] > 0.9,
        ),
    ],
)
