"""Weft's TCP in virtual time beside Linux's in a lab of Mininet, over the same fabric and P4 program.

    sudo .venv/bin/python benchmarks/bench_tcp_linux.py [--duration 10] [--picture docs/pictures/tcp-linux.svg] [--json]

Two hosts send to a third through a port of 20 Mb/s (tcp_linux.yaml), by each congestion control that both have, with
ECN and without. Ratios are Linux's figures over Weft's. docs/tcp.md explains them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from curves import Panel, svg_of
from figures import Figure, argument_parser, report
from tcp_linux import KERNELS_NAMES, Found, Way, kernels_controls, linux, ours

from weft.errors import WeftError

CONTROLS = ("newreno", "cubic", "dctcp")
_DRAWN_S, _MOST_KB = 5, 70


def ways() -> list[Way]:
    """Return each control that this kernel has, with ECN and without; DCTCP always has it."""
    known = [each for each in CONTROLS if KERNELS_NAMES.get(each, each) in kernels_controls()]
    return [Way(each, ecn) for each in known for ecn in ((True,) if each == "dctcp" else (False, True))]


def figures_of(way: Way, weft: Found, kernel: Found) -> Iterator[Figure]:
    """Yield what is compared: Linux's value, and its ratio to Weft's."""
    for name, unit, of in (
        ("goodput", "Mb/s", lambda found: found.goodput_bps / 1e6),
        ("share of the larger flow", "%", lambda found: 100 * found.larger_share),
        ("queue, median", "kB", lambda found: found.queue_bytes(0.5) / 1000),
        ("queue, 90th percentile", "kB", lambda found: found.queue_bytes(0.9) / 1000),
        ("windows of both flows, mean", "kB", lambda found: found.total("mean_window_bytes") / 1000),
        ("segments sent again", "", lambda found: found.total("retransmitted_segments")),
        ("fast recoveries", "", lambda found: found.total("fast_recoveries")),
        ("timeouts", "", lambda found: found.total("timeouts")),
        ("marked segments", "", lambda found: found.marked_packets),
    ):
        own, other = of(weft), of(kernel)
        ratio = other / own if own else None
        yield Figure(f"{way}: {name}", other, unit, f"Weft's {own:,.1f}", ratio)


def panels(found: Mapping[Way, Sequence[Found]]) -> list[Panel]:
    """Return the first flow's window, and of one control the queue, over the first seconds, of both."""
    drawn = []
    for way, pair in found.items():
        if way.ecn:
            continue
        curves = [("window of a flow", lambda each: each.senders[0].windows)]
        if not drawn:
            curves.append(("queue", lambda each: each.queue))
        for title, curve in curves:
            points = {
                name: [(time_s, value / 1000) for time_s, value in curve(each)[::2] if time_s <= _DRAWN_S]
                for name, each in zip(("Weft", "Linux"), pair, strict=True)
            }
            drawn.append(Panel(f"{way}: {title}", "time (s)", f"{title} (kB)", _DRAWN_S, _MOST_KB, points))
    return drawn


def main() -> None:
    """Measure and print."""
    parser = argument_parser(__doc__)
    parser.add_argument("--duration", type=float, default=10.0, help="seconds of each pair of flows")
    parser.add_argument("--picture", type=Path, help="where windows and queues are drawn, as SVG")
    options = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("a lab of Mininet needs root")
    chosen = ways()
    try:
        found = {
            way: pair
            for way, *pair in zip(chosen, ours(chosen, options.duration), linux(chosen, options.duration), strict=True)
        }
    except WeftError as error:
        raise SystemExit(str(error)) from None
    figures = [each for way, pair in found.items() for each in figures_of(way, *pair)]
    report(
        "Linux's TCP in a lab, compared with Weft's in virtual time: ratios to Weft's", figures, as_json=options.json
    )
    if options.picture:
        options.picture.write_text(svg_of(panels(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
