"""SwitchML: all-reduces by one switch, by number of workers, size and loss."""

from __future__ import annotations

from typing import Any

from weft.papers.collectives import times_us
from weft.papers.study import Findings, Setting, Shape, Study, Value
from weft.papers.trees import star, virtual
from weft.results.report_parts import Axis, Curve, CurveFigure
from weft.trials import Procedure, Trial

_LOSSES = (0.0, 1e-4, 1e-3, 1e-2)
_RING, _SWITCH = "ring", "in-network"
_LOSSY_BYTES = 4 << 20


def _tree(workers: int, sizes: list[int], loss: float = 0.0) -> dict[str, Any]:
    return virtual(
        "switchml-2021",
        mtu=4096,
        fabric=star(workers, "100Gb/s", queue_capacity="4MiB"),
        faults={"loss": loss},
        transport={"retransmission": "selective-repeat"},
        traffic=[{"collective": "allreduce", "algorithms": [_RING, _SWITCH], "dtype": "float32", "sizes": sizes}],
    )


def _procedure(setting: Setting) -> Procedure[Findings]:
    workers = (4, 8, 16) if setting.is_full else (4, 8)
    largest = 64 << 20 if setting.is_full else 4 << 20
    sizes = sorted({64 << 10, 1 << 20, largest})
    runs = yield [
        *(Trial(f"{count} workers", _tree(count, sizes)) for count in workers),
        *(Trial(f"loss {loss:g}", _tree(8, [_LOSSY_BYTES], loss)) for loss in _LOSSES),
    ]
    by_workers = dict(zip(workers, map(times_us, runs[: len(workers)]), strict=True))
    by_loss = dict(zip(_LOSSES, map(times_us, runs[len(workers) :]), strict=True))
    switch_us = [times[_SWITCH, largest] for times in by_workers.values()]
    measured = {
        "speed-up of 8 workers": by_workers[8][_RING, largest] / by_workers[8][_SWITCH, largest],
        "slowest over fastest, by workers": max(switch_us) / min(switch_us),
        **{
            f"loss {loss:g}": times[_SWITCH, _LOSSY_BYTES] / by_loss[0.0][_SWITCH, _LOSSY_BYTES]
            for loss, times in by_loss.items()
        },
    }
    speed_ups = CurveFigure(
        "Speed-up of all-reduces of float32 over the ring",
        Axis("size (KiB)", "KiB", "log"),
        Axis("ring's time over the switch's"),
        [
            Curve(
                f"{count} workers",
                [size / 1024 for size in sizes],
                [round(times[_RING, size] / times[_SWITCH, size], 3) for size in sizes],
            )
            for count, times in by_workers.items()
        ],
    )
    lossy = [loss for loss in _LOSSES if loss]
    inflation = CurveFigure(
        "Time under loss, over the time without (4 MiB, 8 workers)",
        Axis("loss of each link", "", "log"),
        Axis("inflation", "", "log"),
        [
            Curve(
                name,
                lossy,
                [round(by_loss[loss][name, _LOSSY_BYTES] / by_loss[0.0][name, _LOSSY_BYTES], 3) for loss in lossy],
            )
            for name in (_SWITCH, _RING)
        ],
    )
    return Findings(measured, figures=[speed_ups, inflation])


KIND = Study(
    name="switchml-2021",
    title="Scaling Distributed Machine Learning with In-Network Aggregation",
    authors="Sapio et al.",
    venue="NSDI",
    year=2021,
    measured=(
        "Training on up to 16 workers with a programmable switch that sums gradients: up to 5.5 times as fast as with "
        "hosts' all-reduces."
    ),
    run=(
        "All-reduces of float32 at 100 Gb/s on one switch, by fabric.p4 and by a ring, for 4 to 16 workers and 64 KiB "
        "to 64 MiB; and of 4 MiB on 8 workers while links lose packets. Communication alone, so the published gain of "
        "training is not judged; hosts cost nothing, so a ring fills its link: a switch gains 2(n - 1)/n at most."
    ),
    reduced="4 and 8 workers, up to 4 MiB.",
    procedure=_procedure,
    values=[
        Value(
            "speed-up of 8 workers",
            "for orientation: speed-up (published: of training; here: of a large all-reduce)",
            5.5,
            "",
            "abstract: up to 5.5 times",
            when=(),
        ),
    ],
    shapes=[
        Shape(
            "the time of an all-reduce does not depend on the number of workers (within 5 %)",
            "section 5",
            lambda measured: measured["slowest over fastest, by workers"] < 1.05,
        ),
        Shape(
            "a loss of 0.01 % costs less than a tenth of the time, one of 1 % much more",
            "section 5 (packet loss)",
            lambda measured: measured["loss 0.0001"] < 1.1 < measured["loss 0.01"],
        ),
        Shape(
            "the switch is faster than the ring",
            "abstract",
            lambda measured: measured["speed-up of 8 workers"] > 1,
        ),
    ],
)
