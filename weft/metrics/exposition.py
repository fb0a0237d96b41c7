"""Prometheus' text format, version 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal

# Not prometheus-client: it manages values that the program counts itself, while these are read from switches and hosts
# at each scrape.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass
class Family:
    """A metric: name with unit, type, one line of help, and values by labels."""

    name: str
    kind: Literal["counter", "gauge", "histogram", "summary"]
    help: str
    samples: list[tuple[str, Mapping[str, str], float]] = field(default_factory=list)
    """For each value: the suffix of the name, the labels, and the value."""

    def add(self, value: float, **labels: object) -> None:
        """Add a value of a counter or a gauge. A trailing _ is removed from labels (`class_`)."""
        self._add("", value, labels)

    def add_summary(self, count: int, total: float, **labels: object) -> None:
        """Add a summary: the number of observations and their sum."""
        self._add("_sum", total, labels)
        self._add("_count", count, labels)

    def add_histogram(self, edges: Sequence[float], counts: Sequence[int], total: float, **labels: object) -> None:
        """Add a histogram: the counts between consecutive edges, the last one above all edges, and the sum."""
        for edge, count in zip((*edges, math.inf), accumulate(counts), strict=True):
            self._add("_bucket", count, {**labels, "le": _number(edge)})
        self.add_summary(sum(counts), total, **labels)

    def _add(self, suffix: str, value: float, labels: Mapping[str, object]) -> None:
        self.samples.append((suffix, {name.rstrip("_"): str(each) for name, each in labels.items()}, value))


class Families:
    """Metrics of one kind of object; each is an attribute."""

    @property
    def all(self) -> list[Family]:
        """All metrics, in the order in which they were set."""
        return [each for each in vars(self).values() if isinstance(each, Family)]


def rendered(families: Iterable[Family]) -> str:
    """Return the families as text; families without values are omitted."""
    return "".join(line + "\n" for family in families if family.samples for line in _lines(family))


def _lines(family: Family) -> list[str]:
    text = family.help.replace("\\", r"\\").replace("\n", r"\n")
    lines = [f"# HELP {family.name} {text}", f"# TYPE {family.name} {family.kind}"]
    return lines + [
        f"{family.name}{suffix}{_labels(labels)} {_number(value)}" for suffix, labels, value in family.samples
    ]


def _labels(labels: Mapping[str, str]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))
