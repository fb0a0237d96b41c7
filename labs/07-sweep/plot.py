"""Draw the sweep's table: time of an all-reduce by size, for each algorithm and number of hosts, as an SVG.

python labs/07-sweep/plot.py DIR/table.csv [TITLE] > times.svg
"""

from __future__ import annotations

import csv
import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 800, 480, 70, 40, 210, 60
TITLE = "All-reduce at 400 Gb/s: time by size (emulated)"
COLOURS = ("#1b6ca8", "#2a9d5c", "#d98a00", "#b8324f")
DASHES = {"ring": "", "in-network": "7 4"}

Curve = list[tuple[float, float]]


def curves(table: Path) -> dict[tuple[str, int], Curve]:
    """(bytes, microseconds) by algorithm and number of ranks."""
    found: dict[tuple[str, int], Curve] = defaultdict(list)
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["state"] == "finished":
                point = (float(row["size_bytes"]), int(row["time_ps"]) / 1e6)
                found[row["algorithm"], int(row["ranks"])].append(point)
    return {key: sorted(curve) for key, curve in found.items()}


def unique_curves(found: dict[tuple[str, int], Curve]) -> dict[str, tuple[str, str, Curve]]:
    """Label, colour and dash of each curve; those that are the same for all numbers of ranks are drawn once."""
    drawn: dict[str, tuple[str, str, Curve]] = {}
    counts = sorted({ranks for _, ranks in found})
    algorithms = sorted({algorithm for algorithm, _ in found})
    for algorithm in algorithms:
        own = {ranks: found[algorithm, ranks] for ranks in counts if (algorithm, ranks) in found}
        same = len({tuple(curve) for curve in own.values()}) == 1 and len(own) > 1
        for ranks, curve in list(own.items())[: 1 if same else None]:
            hosts = f"{min(own)} to {max(own)} hosts" if same else f"{ranks} hosts"
            # With one number of hosts, colours tell algorithms apart, and need no dashes.
            alone = len(counts) == 1
            number = algorithms.index(algorithm) if alone else counts.index(ranks)
            dash = "" if alone else DASHES.get(algorithm, "2 3")
            colour = "#222222" if same else COLOURS[number % len(COLOURS)]
            drawn[f"{algorithm}, {hosts}"] = (colour, dash, curve)
    return drawn


def svg(drawn: dict[str, tuple[str, str, Curve]], title: str) -> Iterator[str]:
    """The picture's lines."""
    points = [point for _, _, curve in drawn.values() for point in curve]
    sizes, times = sorted({x for x, _ in points}), [y for _, y in points]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))

    def at(x: float, y: float) -> tuple[float, float]:
        right = (math.log(x) - math.log(sizes[0])) / (math.log(sizes[-1]) - math.log(sizes[0]))
        up = (math.log10(y) - low) / (high - low)
        return LEFT + right * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    font = 'font-family="sans-serif" font-size="13"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {font}>'
    yield f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    yield f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>'
    for power in range(low, high + 1):
        x, y = at(sizes[0], 10.0**power)
        yield f'<line x1="{x}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#dddddd"/>'
        yield f'<text x="{x - 8}" y="{y + 4:.1f}" text-anchor="end">{10**power:g} µs</text>'
    for size in sizes:
        x, y = at(size, 10.0**low)
        yield f'<text x="{x:.1f}" y="{y + 20:.1f}" text-anchor="middle">{size_text(size)}</text>'
    yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 14}" text-anchor="middle">bytes of each host</text>'
    # The legend stands in the order in which the curves end, so that the eye need not search.
    order = sorted(drawn.items(), key=lambda item: item[1][2][0][1], reverse=True)
    for number, (label, (colour, dash, curve)) in enumerate(order):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*point) for point in curve))
        style = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
        yield f'<polyline points="{path}" fill="none" {style}/>'
        yield from (f'<circle cx="{at(*p)[0]:.1f}" cy="{at(*p)[1]:.1f}" r="3" fill="{colour}"/>' for p in curve)
        x, y = WIDTH - RIGHT + 16, TOP + 20 + 22 * number
        yield f'<line x1="{x}" y1="{y}" x2="{x + 26}" y2="{y}" {style}/>'
        yield f'<text x="{x + 32}" y="{y + 4}" font-size="12">{escape(label)}</text>'
    yield "</svg>"


def size_text(size: float) -> str:
    """A power of two with its unit."""
    return f"{size / 2**20:g} MiB" if size >= 2**20 else f"{size / 2**10:g} KiB"


if __name__ == "__main__":
    title = sys.argv[2] if len(sys.argv) > 2 else TITLE
    print("\n".join(svg(unique_curves(curves(Path(sys.argv[1]))), title)))
