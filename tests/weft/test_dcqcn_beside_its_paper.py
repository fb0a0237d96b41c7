"""DCQCN with its paper's parameters: the queue that its law asks for, by number of flows and share of marks."""

from __future__ import annotations

import math
import random
import re

import numpy as np
import pytest

from weft.papers.studies.dcqcn_2015 import KMAX_BYTES, KMIN_BYTES, incast_tree
from weft.paths import ROOT
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

PAGE = ROOT / "docs" / "dcqcn.md"
MS = 10**9
RATE_BPS = 40e9
ROWS = [(2, 0.01), (10, 0.01), (20, 0.01), (20, 0.05), (20, 0.1)]


def queue_kilobytes(flows: int, pmax: float) -> tuple[float, float]:
    """Return the median and the 90th percentile, from 15 ms to 36 ms after all flows began at line rate."""
    result = run_scenario(parse_scenario(incast_tree(flows, pmax, 180_000_000 // flows)))
    rows = result.observations.tables["queues"]
    times_ps, depths = np.asarray(rows["time_ps"]), np.asarray(rows["queue_bytes"])
    kept = (np.asarray(rows["priority_class"]) == 3) & (times_ps > 15 * MS) & (times_ps < 36 * MS)
    median, high = np.percentile(depths[kept], [50, 90]) / 1000
    return float(median), float(high)


def share_of_marks(flows: int) -> float:
    """Return the share of a flow's packets, at an equal share of the link, for which its rate neither grows nor falls.

    By the paper's figure 7 and equations 1 to 4 alone, none of Weft's code: g 1/256, timers of 55 us, CNPs at most
    every 50 us, five stages of fast recovery, R_AI 40 Mb/s. Its byte counter of 10 MB never counts at these rates.
    """
    fair_bps, timer_s, gain = RATE_BPS / flows, 55e-6, 1 / 256

    def drift(share: float) -> float:
        draw = random.Random(1)
        target_bps, alpha, stage, grown = fair_bps, 0.5, 0, 0.0
        now = 0.0
        stage_at = alpha_at = timer_s
        notified_at = -1.0
        while now < 0.1:
            rate_bps = fair_bps
            now += 1128 * 8 / fair_bps
            while stage_at <= now:
                stage, stage_at = stage + 1, stage_at + timer_s
                target_bps += 40e6 if stage > 5 else 0
                rate_bps = (target_bps + rate_bps) / 2
            while alpha_at <= now:
                alpha, alpha_at = alpha * (1 - gain), alpha_at + timer_s
            if draw.random() < share and now - notified_at >= 50e-6:
                notified_at, target_bps, stage = now, rate_bps, 0
                rate_bps *= 1 - alpha / 2
                alpha = (1 - gain) * alpha + gain
                stage_at = alpha_at = now + timer_s
            # Held at its share; what it would have gained is added up.
            grown += math.log(rate_bps / fair_bps)
            target_bps *= fair_bps / rate_bps
        return grown

    low, high = 1e-4, 0.1
    for _ in range(9):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if drift(middle) > 0 else (low, middle)
    return low


@pytest.mark.parametrize(("flows", "pmax"), ROWS)
def test_the_page_has_the_queue_and_what_the_law_asks_for(flows: int, pmax: float) -> None:
    number = r"([\d.]+)"
    row = re.search(
        rf"^\| {flows} \| {pmax:.0%} \| {number} % \| (.*) \| {number} \| {number} \|$",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert row, f"{flows} flows, pmax {pmax:.0%}: no such row"
    asked, expected, median, high = row.groups()
    share = share_of_marks(flows)
    assert share * 100 == pytest.approx(float(asked), rel=0.15)
    if share > pmax:
        assert expected == "beyond K<sub>max</sub>"
    else:
        asked_bytes = KMIN_BYTES + (KMAX_BYTES - KMIN_BYTES) * share / pmax
        assert asked_bytes / 1000 == pytest.approx(float(expected), rel=0.15)
    measured = queue_kilobytes(flows, pmax)
    assert measured == pytest.approx((float(median), float(high)), rel=0.2, abs=5)
    # The queue reaches Kmax where the law's balance is near it, or beyond, and nowhere else.
    assert (measured[1] > 0.85 * KMAX_BYTES / 1000) == (share > 0.7 * pmax)
