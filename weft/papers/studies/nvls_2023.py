"""NVLink SHARP: all-reduces of the eight GPUs of a host by their switches and by rings."""

from __future__ import annotations

from typing import Any

from weft.papers.study import Findings, Scale, Setting, Shape, Study, Value
from weft.papers.trees import star, virtual
from weft.results.report_parts import Axis, Curve, CurveFigure
from weft.trials import Procedure, Trial

_GPUS = 8
_RING, _SWITCH = "ring", "in-network"
_PLACE = "a maintainer of NCCL, NVIDIA/nccl-tests issue 212"


def _tree(sizes: list[int]) -> dict[str, Any]:
    # NVLink 4: 450 GB/s in each direction.
    return virtual(
        "nvls-2023",
        mtu=4096,
        fabric=star(_GPUS, "3600Gb/s", "100ns", queue_capacity="16MiB"),
        transport={"retransmission": "selective-repeat"},
        traffic=[{"collective": "allreduce", "algorithms": [_RING, _SWITCH], "dtype": "int32", "sizes": sizes}],
    )


def _procedure(setting: Setting) -> Procedure[Findings]:
    sizes = [1 << 20, 16 << 20, *([128 << 20] if setting.is_full else [])]
    (run,) = yield [Trial("all-reduces", _tree(sizes))]
    busbw = {(each.algorithm, each.size_bytes): each.busbw_bytes_per_s / 1e9 for each in run.results_of("collectives")}
    measured = {
        "ring": busbw[_RING, sizes[-1]],
        "switch": busbw[_SWITCH, sizes[-1]],
        "speed-up": busbw[_SWITCH, sizes[-1]] / busbw[_RING, sizes[-1]],
    }
    figure = CurveFigure(
        "Bus bandwidth of eight GPUs",
        Axis("size (MiB)", "MiB", "log"),
        Axis("GB/s", "GB/s"),
        [
            Curve(algorithm, [size >> 20 for size in sizes], [round(busbw[algorithm, size], 1) for size in sizes])
            for algorithm in (_RING, _SWITCH)
        ],
    )
    return Findings(measured, figures=[figure])


_SHARE_OF_PEAK = (
    "Weft's link carries whole frames at 450 GB/s, and NVLink's protocol and NCCL's kernels cost nothing: a ring "
    "reaches the link's rate, and a switch 2(n - 1)/n of it. How the rest is lost in hardware is not published."
)

KIND = Study(
    name="nvls-2023",
    title="NVLink SHARP in NCCL",
    authors="NVIDIA",
    venue="nccl-tests,",
    year=2023,
    measured="On eight H100s: a bus bandwidth of about 480 GB/s by NVLink SHARP, and 370 by rings.",
    run="All-reduces of int32 of 128 MiB on eight endpoints of one switch, 3.6 Tb/s each, by fabric.p4 and by a ring.",
    reduced="16 MiB.",
    procedure=_procedure,
    values=[
        Value("ring", "bus bandwidth by rings", 370, "GB/s", _PLACE, explanation=_SHARE_OF_PEAK),
        Value("switch", "bus bandwidth by switches", 480, "GB/s", _PLACE, explanation=_SHARE_OF_PEAK),
        Value("speed-up", "switches over rings", 480 / 370, "", _PLACE, explanation=_SHARE_OF_PEAK),
    ],
    shapes=[
        Shape(
            "switches reach a higher bus bandwidth than rings",
            _PLACE,
            lambda measured: measured["switch"] > measured["ring"],
            when=(Scale.FULL, Scale.REDUCED),
        ),
    ],
)
