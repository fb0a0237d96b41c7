"""A lab of the real clock is scraped while its traffic runs, and afterwards."""

from __future__ import annotations

import urllib.request

import pytest
from metrics.exposed import parsed

from weft.live import AttachedShown, Shown
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

SCENARIO = {
    "clock": "real",
    "dilation": 1000.0,
    "fabric": {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 2},
    "traffic": [{"incast": "h0", "bytes_per_sender": 65536}],
}


class Scraper:
    """Scrapes when the traffic begins and when it has ended."""

    def __init__(self, said: list[str]) -> None:
        self.said = said
        self.texts: list[str] = []

    def begin(self, _fabric: object) -> None:
        self.texts.append(self._scrape())

    def end(self, _fabric: object) -> None:
        self.texts.append(self._scrape())

    def _scrape(self) -> str:
        with urllib.request.urlopen(self.said[0].split()[-1], timeout=30) as answer:
            return str(answer.read().decode())


@pytest.mark.mininet
def test_a_run_is_scraped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.metrics.recent.LEAST_INTERVAL_S", 0.0)  # the run is shorter than that
    said: list[str] = []
    scraper = Scraper(said)
    with AttachedShown(Shown(metrics_port=0), said.append) as metrics:
        # The scraper ends first, while the metrics are still served.
        run_scenario(parse_scenario(SCENARIO), attached=[_Begins(metrics), scraper, _Ends(metrics)])
    name = 'weft_port_transmitted_bytes_total{switch="p0l0",port="1",peer="h0"} '
    before, after = (
        float(next(line for line in text.splitlines() if line.startswith(name)).split()[-1]) for text in scraper.texts
    )
    assert after - before > 3 * 65536
    assert "weft_dilation_ratio 1000.0" in scraper.texts[0]
    last = parsed(scraper.texts[1])
    received = last["weft_host_received_bytes_total", frozenset({("host", "h0")})]
    assert received == 3 * 65536
    # The two senders of the other leaf have waited at the leaf that the receiver is at.
    of_h0 = frozenset({("switch", "p0l0"), ("peer", "h0")})
    assert last["weft_int_hop_latency_seconds_count", of_h0] > 0
    assert last["weft_int_hop_latency_seconds_sum", of_h0] > 0
    assert last["weft_run_items", frozenset()] == last["weft_run_done_items", frozenset()] == 1


class _Begins:
    def __init__(self, metrics: AttachedShown) -> None:
        self.begin = metrics.begin

    def end(self, _fabric: object) -> None:
        """Nothing: others still look on."""


class _Ends:
    def __init__(self, metrics: AttachedShown) -> None:
        self.end = metrics.end

    def begin(self, _fabric: object) -> None:
        """Begun before the others."""
