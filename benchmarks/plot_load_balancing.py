"""Draw what bench_load_balancing.py found: throughput and 99th-percentile completion of every mode, as a PNG.

    .venv/bin/python benchmarks/bench_load_balancing.py --hosts 1024 --retransmission selective-repeat --json > 1.json
    .venv/bin/python benchmarks/plot_load_balancing.py 1.json [MORE.json…] docs/pictures/load-balancing.png

Bars are of the longer flows: the share of the line in the steady state, with the slowest host's as a mark, and the time
in which 99 % of the hosts were done.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cairosvg

GOAL = 0.95
WIDTH, ROW, TOP, LEFT, GAP, BARS = 1060, 34, 74, 270, 60, 360
BLUE, GREEN, RED = "#1b6ca8", "#2a9d5c", "#b8324f"
SPREADING = ("round robin", "random", "adaptive")


@dataclass(frozen=True)
class Mode:
    """A row: shares of the line and microseconds."""

    name: str
    steady_share: float
    slowest_share: float
    percentile_99_us: float

    @property
    def colour(self) -> str:
        """Of its bars: whether it spreads packets over all paths."""
        return GREEN if self.name.startswith(SPREADING) else BLUE


def modes_of(files: Sequence[Path]) -> list[Mode]:
    """Rows in the order of the files."""
    found: list[Mode] = []
    for file in files:
        name, seen = "", {}
        for figure in json.loads(file.read_text(encoding="utf-8"))["figures"]:
            if not figure["name"].startswith(" "):
                name, seen = figure["name"].rpartition(", ")[0].replace("_", " "), {}
            seen[figure["name"].rpartition(", ")[2].strip()] = figure
            if figure["name"].strip() == "steady state":
                found.append(_mode(name, seen))
    return found


def _mode(name: str, figures: dict[str, dict[str, float]]) -> Mode:
    # Rows of both sizes have these names; the longer flows come later.
    wanted = ("steady state", "the slowest host", "99th percentile")
    steady_share, slowest_share, percentile_99_us = (figures[each]["value"] for each in wanted)
    return Mode(name, steady_share, slowest_share, percentile_99_us)


def svg(modes: Sequence[Mode], title: str) -> Iterator[str]:
    """The picture's lines."""
    height = TOP + ROW * len(modes) + 46
    longest_us = max(mode.percentile_99_us for mode in modes)
    right = LEFT + BARS + GAP
    font = 'font-family="sans-serif" font-size="13"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {font}>'
    yield f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
    yield f'<text x="16" y="26" font-size="16">{title}</text>'
    yield f'<text x="{LEFT}" y="56">share of the line in the steady state; black: slowest host</text>'
    yield f'<text x="{right}" y="56">99 % of hosts done after (µs)</text>'
    bottom = TOP + ROW * len(modes)
    for share in (0, 0.25, 0.5, 0.75, GOAL):
        x = LEFT + share * BARS
        colour = RED if share == GOAL else "#dddddd"
        yield f'<line x1="{x}" y1="{TOP - 8}" x2="{x}" y2="{bottom}" stroke="{colour}"/>'
        ink = RED if share == GOAL else "#444444"
        yield f'<text x="{x}" y="{bottom + 18}" text-anchor="middle" fill="{ink}">{share:g}</text>'
    for number, mode in enumerate(modes):
        y = TOP + ROW * number
        middle = y + ROW / 2
        yield f'<text x="{LEFT - 10}" y="{middle - 2}" text-anchor="end">{mode.name}</text>'
        bar = f'height="{ROW - 12}" fill="{mode.colour}"'
        yield f'<rect x="{LEFT}" y="{y}" width="{mode.steady_share * BARS:.1f}" {bar}/>'
        slowest = LEFT + mode.slowest_share * BARS
        ends = f'x1="{slowest:.1f}" y1="{y - 2}" x2="{slowest:.1f}" y2="{y + ROW - 10}"'
        yield f'<line {ends} stroke="black" stroke-width="2"/>'
        yield f'<text x="{LEFT + 6}" y="{middle - 2}" fill="white">{mode.steady_share:.3f}</text>'
        width = mode.percentile_99_us / longest_us * (WIDTH - right - 80)
        yield f'<rect x="{right}" y="{y}" width="{width:.1f}" {bar}/>'
        yield f'<text x="{right + width + 6:.1f}" y="{middle - 2}">{mode.percentile_99_us:,.0f}</text>'
    yield "</svg>"


def main() -> None:
    """Write the picture."""
    *found, picture = map(Path, sys.argv[1:])
    title = json.loads(found[0].read_text(encoding="utf-8"))["benchmark"]
    text = "\n".join(svg(modes_of(found), title[0].upper() + title[1:]))
    cairosvg.svg2png(text.encode(), write_to=str(picture), scale=1.5)


if __name__ == "__main__":
    main()
