"""The dragonfly: throughput of minimal routes, Valiant's and UGAL, for uniform and adversarial traffic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from weft.papers.dragonfly_messages import Shape as Dragonfly
from weft.papers.flow_times import FlowTimes
from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.papers.trees import virtual
from weft.paths import PACKAGE
from weft.quantities.units import PS_PER_US
from weft.results.report_parts import Axis, Curve, CurveFigure
from weft.trials import Procedure, Trial, TrialRun

_SHAPES = {Scale.FULL: Dragonfly(4, 8, 4, 33), Scale.REDUCED: Dragonfly(2, 4, 2, 9)}
_DURATION_US = {Scale.FULL: 60.0, Scale.REDUCED: 60.0}
_WARM_UP = 0.4
_SIZE_BYTES, _FRAME_BYTES, _RATE_GBPS = 4096, 4194, 100.0
_ROUTES = {"minimal": "dragonfly_minimal", "Valiant": "dragonfly_valiant", "UGAL-L": "dragonfly_ugal"}
_LOADS: Mapping[tuple[str, str], tuple[float, ...]] = {
    ("uniform", "minimal"): (0.4, 0.9),
    ("uniform", "Valiant"): (0.4, 0.6),
    ("uniform", "UGAL-L"): (0.4, 0.9),
    ("adversarial", "minimal"): (0.03, 0.2),
    ("adversarial", "Valiant"): (0.2, 0.6),
    ("adversarial", "UGAL-L"): (0.2, 0.6),
}
"""Below saturation, and beyond it."""
_PLACE = "section 4.2, figure 8"


def _tree(setting: Setting, pattern: str, routes: str, load: float) -> dict[str, Any]:
    shape = _SHAPES[setting.scale]
    return virtual(
        "kim-2008",
        mtu=_SIZE_BYTES,
        fabric={
            "kind": "dragonfly",
            "planes": 1,
            "groups": shape.groups,
            "routers": shape.routers,
            "global_links": shape.global_links,
            "hosts_per_leaf": shape.hosts_per_router,
            "host_rate": f"{_RATE_GBPS:g}Gb/s",
            "delay": "200ns",
        },
        routing={"kind": _ROUTES[routes]},
        credits={"classes": [3], "buffer": 16 * -(-_FRAME_BYTES // 64) * 64},
        transport={"retransmission": "selective-repeat", "retransmission_timeout": "100ms"},
        observe={"flows": True},
        traffic=[
            {
                "pattern": f"{PACKAGE / 'papers' / 'dragonfly_messages.py'}:DragonflyMessages",
                "parameters": {
                    "shape": [shape.hosts_per_router, shape.routers, shape.global_links, shape.groups],
                    "pattern": pattern,
                    "load": load,
                    "duration_us": _DURATION_US[setting.scale],
                    "size_bytes": _SIZE_BYTES,
                    "frame_bytes": _FRAME_BYTES,
                    "rate_gbps": _RATE_GBPS,
                },
            }
        ],
    )


def _throughput_and_latency_us(setting: Setting, run: TrialRun) -> tuple[float, float]:
    """Return the share of the line that was acknowledged after the warm-up, and the latency of messages since then."""
    flows, duration_ps = FlowTimes.of_run(run), _DURATION_US[setting.scale] * PS_PER_US
    begins_ps = _WARM_UP * duration_ps
    ends_ps = flows.start_ps + flows.completion_ps
    arrived = np.count_nonzero((ends_ps >= begins_ps) & (ends_ps < duration_ps))
    frame_ps = _FRAME_BYTES * 8000 / _RATE_GBPS
    latency_ps = flows.completion_ps[flows.start_ps >= begins_ps].mean()
    return float(arrived * frame_ps / (duration_ps - begins_ps) / _SHAPES[setting.scale].hosts), float(latency_ps) / 1e6


def _procedure(setting: Setting) -> Procedure[Findings]:
    loads = {key: both if setting.is_full else both[1:] for key, both in _LOADS.items()}
    cases = [(*key, load) for key, each in loads.items() for load in each]
    runs = yield [Trial(f"{p}, {routes}, load {load:g}", _tree(setting, p, routes, load)) for p, routes, load in cases]
    points = {case: _throughput_and_latency_us(setting, run) for case, run in zip(cases, runs, strict=True)}
    measured = {
        f"{pattern}, {routes}": max(points[pattern, routes, load][0] for load in each)
        for (pattern, routes), each in loads.items()
    }
    shape = _SHAPES[setting.scale]
    measured["adversarial, minimal, over its bound"] = (
        measured["adversarial, minimal"] * shape.routers * shape.global_links
    )
    figures = [
        CurveFigure(
            f"{pattern}: throughput over load",
            Axis("offered, share of the line"),
            Axis("throughput, share of the line"),
            [
                Curve(
                    routes,
                    loads[pattern, routes],
                    [round(points[pattern, routes, load][0], 4) for load in loads[pattern, routes]],
                )
                for routes in _ROUTES
            ],
        )
        for pattern in ("uniform", "adversarial")
    ]
    return Findings(measured, figures=figures)


KIND = Study(
    name="kim-2008",
    title="Technology-Driven, Highly-Scalable Dragonfly Topology",
    authors="Kim, Dally, Scott and Abts",
    venue="ISCA",
    year=2008,
    measured=(
        "Latency over load in a simulator of flits on a dragonfly of 1,056 hosts (p = 4, a = 8, h = 4, g = 33): "
        "uniform traffic, and the worst case, where all hosts of a group send to the next one."
    ),
    run=(
        "The same dragonfly at 100 Gb/s with fabric.p4 at every router, lossless by credits with buffers of 16 frames "
        "a lane, messages of one packet of 4,096 B for 60 µs, of which the last 36 count. Throughput beyond saturation."
    ),
    reduced="72 hosts (p = 2, a = 4, h = 2, g = 9), loads beyond saturation alone.",
    procedure=_procedure,
    values=[
        Value(
            "adversarial, minimal, over its bound",
            "adversarial, minimal routes: throughput times a·h",
            1.0,
            "",
            _PLACE,
            0.1,
            when=(Scale.FULL, Scale.REDUCED),
        ),
        Value(
            "adversarial, Valiant",
            "adversarial, Valiant's routes",
            0.5,
            "",
            _PLACE,
            0.15,
            explanation=(
                "packets of 4,096 bytes and buffers of 16 frames a lane, where the paper moves single flits; switches "
                "queue at their outputs; and the run is short."
            ),
            when=(Scale.FULL, Scale.REDUCED),
        ),
        Value(
            "adversarial, UGAL-L",
            "adversarial, UGAL-L",
            0.5,
            "",
            _PLACE,
            0.15,
            explanation=(
                "a router learns of the crowded link only when the buffers on the way to it are full (section 4.3), "
                "which takes much of 60 µs."
            ),
        ),
        Value("uniform, minimal", "uniform, minimal routes, 0.9 offered", 0.9, "", _PLACE, 0.1),
        Value(
            "uniform, Valiant",
            "uniform, Valiant's routes",
            0.5,
            "",
            _PLACE,
            0.15,
            explanation="with few groups many packets stay in their group and take no global link.",
        ),
    ],
    shapes=[
        Shape(
            "adversarial: UGAL-L and Valiant's routes carry a multiple of minimal ones",
            _PLACE,
            lambda measured: (
                min(measured["adversarial, Valiant"], measured["adversarial, UGAL-L"])
                > 2 * measured["adversarial, minimal"]
            ),
        ),
        Shape(
            "uniform: minimal routes carry more than UGAL-L, UGAL-L more than Valiant's",
            _PLACE,
            lambda measured: measured["uniform, minimal"] > measured["uniform, UGAL-L"] > measured["uniform, Valiant"],
        ),
    ],
)
