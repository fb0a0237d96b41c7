"""The state that the page shows: a lab sampled once a second, its links' states and its events."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from weft.clocks.lab import Lab
from weft.errors import BadInputError
from weft.live.contents import Contents, reader_of
from weft.live.events import EventRows
from weft.live.samples import SERIES, Sample, Samples, finite
from weft.metrics import Family
from weft.metrics.recent import LEAST_INTERVAL_S
from weft.metrics.server import UNREADABLE
from weft.quantities.readable import format_time
from weft.quantities.units import PS_PER_S
from weft.topologies import Endpoint

MOST_PORTS = 8
"""Most ports in one request for charts."""
_LEAST_PAUSE = 4
"""Shortest pause between two reads, in durations of the last one, so that large labs are not read all the time."""


class LiveView:
    """Samples a lab while entered, and returns plain JSON values. Callable from any thread.

    Args:
        lab: the lab, which is up.
        read: returns the lab's metrics.
        contents: reads the switches' entries; by default over P4Runtime.
    """

    def __init__(self, lab: Lab, read: Callable[[], list[Family]], contents: Contents | None = None) -> None:
        self.lab = lab
        self.fabric = lab.fabric
        self.contents = contents or Contents(reader_of(lab))
        self._read = read
        self._last: list[Family] | None = None
        self._samples = Samples(lab.fabric)
        link_names = [lab.fabric.link_name(link) for link in lab.fabric.links]
        self._events = EventRows(self._samples.port_names, link_names)
        self._number_of_link = {link.ends: number for number, link in enumerate(lab.fabric.links)}
        self._first_s: float | None = None
        self._state: dict[str, Any] = {"number": 0, "problem": "nothing has been read yet"}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._has_rates = lab.switch_stats() is not None
        self._thread = threading.Thread(target=self._run, name="live page", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.is_set():
            began_s = time.monotonic()
            self.sample()
            took_s = time.monotonic() - began_s
            self._ending.wait(max(LEAST_INTERVAL_S - took_s, _LEAST_PAUSE * took_s))

    def sample(self) -> None:
        """Read the lab now; if that fails, the page shows the problem."""
        try:
            families = self._read()
            with self._lock:
                if families is self._last:  # another reader's result, already sampled
                    return
                self._last = families
                self._take(self._samples.add(families))
        except UNREADABLE as error:
            self._note_problem(str(error))
        except Exception as error:
            # A bug in Weft: the page says that it is outdated instead of silently stopping.
            self._note_problem(f"this cannot be shown: {type(error).__name__}: {error}")

    def _note_problem(self, problem: str) -> None:
        with self._lock:
            self._state = {**self._state, "problem": problem}

    def _take(self, sample: Sample) -> None:
        if self._first_s is None and np.isfinite(sample.emulated_s):
            self._first_s = sample.emulated_s
        at = self._at(sample.emulated_s)
        down = frozenset(self._number_of_link[ends] for ends in self.lab.links_down())
        self._events.follow_log(self.lab.operations.log)
        if not self.lab.controller_stays:
            self._events.follow_links(down, at)
        self._events.follow_sample(sample, at)
        shares = np.nan_to_num(np.stack([sample.up, sample.down], axis=1))
        rows = np.nan_to_num(sample.ports)
        self._state = {
            "number": self._samples.count,
            "emulated_s": finite(sample.emulated_s),
            "interval_s": finite(sample.interval_s),
            "links": {
                int(link): [round(float(share), 4) for share in shares[link]]
                for link in np.flatnonzero(shares.any(axis=1))
            },
            "ports": {int(port): [finite(value) for value in rows[port]] for port in np.flatnonzero(rows.any(axis=1))},
            "down": sorted(down),
            "problem": "",
        }

    def _at(self, emulated_s: float) -> str:
        """Return a time of the emulated clock like the controller's log: counted from when the lab was up."""
        if not np.isfinite(emulated_s) or self._first_s is None:
            return "-"
        operations = self.lab.operations
        if operations.up_ps is not None:
            return format_time(operations.since_up_ps(int(emulated_s * PS_PER_S)))
        return format_time(int((emulated_s - self._first_s) * PS_PER_S))

    def state(self, after: int) -> dict[str, Any]:
        """Return the latest sample without idle ports and links, and the events from number `after` on."""
        with self._lock:
            return {
                **self._state,
                "events": self._events.since(after),
                "next_event": self._events.added,
            }

    def history(self, ports: Sequence[str]) -> dict[str, Any]:
        """Return `Samples.history` of named ports. Raises BadInputError: one is unknown, or there are too many."""
        if len(ports) > MOST_PORTS:
            raise BadInputError(f"{len(ports)} ports", valid=f"at most {MOST_PORTS}")
        for name in ports:
            if name not in self._samples.number_of:
                raise BadInputError(f"no switch has the port {name!r}", valid=f"such as {self._samples.port_names[:3]}")
        with self._lock:
            return self._samples.history([self._samples.number_of[name] for name in ports])

    def facts(self) -> dict[str, Any]:
        """Return the constant facts: links with the ports at their ends, ports, switches, the dilation."""
        number_of = self._samples.number_of
        return {
            "series": SERIES,
            "dilation": self.lab.options.dilation,
            "has_rates": self._has_rates,
            "most_ports": MOST_PORTS,
            "switches": [switch.name for switch in self.fabric.switches],
            "ports": [
                {
                    "name": str(Endpoint(switch.name, port.number)),
                    "peer": port.peer.node,
                    "rate_bps": port.link.rate_bps,
                    "queue_bytes": port.link.queue_capacity_bytes,
                }
                for switch in self.fabric.switches
                for port in switch.ports
            ],
            "links": [
                {
                    "name": self.fabric.link_name(link),
                    "a": link.a.node,
                    "b": link.b.node,
                    "up": number_of.get(str(link.a), -1),
                    "down": number_of[str(link.b)],
                }
                for link in self.fabric.links
            ],
        }
