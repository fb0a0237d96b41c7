"""Thresholds of the search for noisy parts, each declared once, and the bound on false findings that they keep.

A statistical test (losses, failures, computing times) may err. All tests of a run together find something in a healthy
fabric with probability `false_findings` at most, by Bonferroni's inequality: each family of tests has an equal part of
it, each part of the fabric an equal part of that, and the n-th time that a part is tested 1 / (n (n + 1)) of that,
which adds up to 1 however often it is tested. The other tests (rates, pauses) do not err in a healthy fabric; see their
modules.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from weft.controller.errors import SettingError

FAMILIES = 3
"""Families of statistical tests: losses, failures, computing times."""
LOSS_FLOOR = 1e-6
"""Loss ratio of a healthy link, at most. With a bit error ratio of 1e-12, the objective of IEEE 802.3, a frame of 4 KiB
is lost with a probability of 3.5e-8."""
TIMES_PEERS = 3.0
"""A lossy direction loses at least so many times the share that its peers lose."""
LEAST_PEERS = 3
"""Fewer peers say nothing about what is usual."""
LEAST_PAUSED = 0.05
"""Share of time for which a noisy NIC pauses its switch, at least."""
TIMES_PEERS_PAUSED = 4.0
"""A noisy NIC pauses its switch at least so many times as long as the median of the others."""
PAUSE_WINDOW = 8
"""Readings over which a share of paused time is judged, so that a single burst is not."""
GAP_FRAMES = 16
"""A port's rate is measured over the time in which it would send so many of the largest frames."""
MOST_SLOW = 0.93
"""A healthy port measures 1 - 1/GAP_FRAMES of its rate at least, because a frame may be under way."""
LEAST_GAPS = 4
"""Such times in a row, each below the rate, before a switch's port is slow."""
LEAST_NIC_GAPS = 8
"""The same of a NIC, of which only its queue pairs say whether packets wait."""
FAILURES_FLOOR = 0.01
"""Failures of a healthy link in a run, in the mean, at most. Links fail a few times a year; a run lasts seconds."""
LINKS_LEFT = 0.5
"""Share of a switch's links to other switches that stays in use, whatever is found. CorrOpt (Zhuo et al., SIGCOMM 2017)
keeps a share of each top-of-rack switch's paths in the same way."""
PLANES_LEFT = 0.75
"""Share of the planes that stays in use for the sake of one host's link."""


@dataclass(frozen=True)
class NoiseLimits:
    """Thresholds that a scenario can change.

    Attributes:
        false_findings: probability that statistical tests find anything in a healthy run, at most.
        least_loss: share of lost packets below which a link is left alone, whatever its peers lose.
        slow: share of its rate below which a port with waiting packets is slow.
        straggler: times the computing time of its peers from which a host is slow.

    Raises:
        SettingError: a value is out of range.

    """

    false_findings: float = 1e-4
    least_loss: float = 1e-4
    slow: float = 0.9
    straggler: float = 1.1

    def __post_init__(self) -> None:
        """Check the ranges."""
        checks = (
            ("false_findings", 0 < self.false_findings <= 1, "above 0 to 1"),
            ("least_loss", 0 < self.least_loss <= 1, "above 0 to 1"),
            ("slow", 0 < self.slow <= MOST_SLOW, f"above 0 to {MOST_SLOW:g}"),
            ("straggler", self.straggler > 1, "above 1"),
        )
        for name, is_valid, valid in checks:
            if not is_valid:
                raise SettingError(f"{name} {getattr(self, name):g}", valid=valid)

    def log_chance(self, parts: int, test: int) -> float:
        """Return the logarithm of the chance of a false finding that one test of one part may have.

        `test` counts the tests of the part, from 1.
        """
        return math.log(self.false_findings / (FAMILIES * max(1, parts))) - math.log(test * (test + 1.0))
