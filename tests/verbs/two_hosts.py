"""Two hosts' /dev/infiniband/rdma_cm over Unix sockets, with a network between them: for programs that run for real.

    PYTHONPATH=. python tests/verbs/two_hosts.py FOLDER [--loss 0.1] [--twice 0.1]

serves FOLDER/a.sock (10.0.0.1, fd00::1) and FOLDER/b.sock (10.0.0.2, fd00::2) until its standard input ends; a line
there with a host and a service ID asks whether somebody listens. One second
of the hosts' clocks takes a two-hundredth of one here, so that losses cost no test's time.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import sys
import time
from pathlib import Path
from random import Random

from tests.verbs.cm_ends import cm_hosts, other
from weft.traffic.verbs.socket import listening

FASTER = 200
DELAY_S = 0.0005


class TwoHosts:
    """Both hosts, their listening sockets and what is on its way between them."""

    def __init__(self, folder: Path, loss: float, twice: float) -> None:
        self._loss, self._twice, self._random = loss, twice, Random(1)
        self._started = time.monotonic()
        self._selector = selectors.DefaultSelector()
        self._wire: list[tuple[float, int, str, int, bytes, bytes, bytes]] = []
        self._sent = 0
        self._ends = False
        self.hosts = cm_hosts()
        for name in self.hosts:
            listener = listening(folder / f"{name}.sock")
            self._selector.register(listener, selectors.EVENT_READ, ("accept", name, listener))
        self._selector.register(sys.stdin.fileno(), selectors.EVENT_READ, ("end", "", None))

    def serve(self) -> None:
        """Serve until the standard input ends."""
        while not self._ends:
            for key, _ in self._selector.select(self._patience_s()):
                self._serve_one(key.fileobj, *key.data)
            self._let_time_pass()

    def _serve_one(self, ready: object, what: str, name: str, listener: socket.socket | None) -> None:
        if what == "end":
            asked = sys.stdin.readline().split()
            self._ends = not asked
            if asked:
                print(self.hosts[asked[0]].listens(int(asked[1], 0)), flush=True)
        elif what == "accept":
            assert listener is not None
            number = listener.accept()[0].detach()
            self.hosts[name].add_channel(number)
            self._selector.register(number, selectors.EVENT_READ, ("channel", name, None))
        else:
            # The host closes the descriptor of a program that has gone.
            assert isinstance(ready, int)
            self._put_clock(name)
            self._selector.unregister(ready)
            if self.hosts[name].serve_channel(ready):
                self._selector.register(ready, selectors.EVENT_READ, ("channel", name, None))

    def _put_clock(self, name: str) -> None:
        self.hosts[name].now_ps = int((time.monotonic() - self._started) * FASTER * 1e12)

    def _patience_s(self) -> float | None:
        now = time.monotonic()
        due = [each[0] - now for each in self._wire[:1]]
        for host in self.hosts.values():
            if host.next_deadline_ps is not None:
                due.append(self._started + host.next_deadline_ps / 1e12 / FASTER - now)
        return max(0.0, min(due)) if due else None

    def _let_time_pass(self) -> None:
        now = time.monotonic()
        while self._wire and self._wire[0][0] <= now:
            _, _, name, port, local, remote, mad = self._wire.pop(0)
            self._put_clock(name)
            self.hosts[name].receive(port, local, remote, mad)
        for name, host in self.hosts.items():
            self._put_clock(name)
            host.advance()
            for port, local, remote, mad in host.take_outgoing():
                draw = self._random.random()
                copies = 0 if draw < self._loss else 2 if draw < self._loss + self._twice else 1
                for _ in range(copies):
                    self._sent += 1
                    self._wire.append((now + DELAY_S, self._sent, other(name), port, remote, local, mad))
            host.take_signalled()
            host.take_groups()
        self._wire.sort(key=lambda each: each[:2])


def main() -> None:
    """Serve, and write what is left at the end as a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--loss", type=float, default=0.0)
    parser.add_argument("--twice", type=float, default=0.0)
    given = parser.parse_args()
    both = TwoHosts(given.folder, given.loss, given.twice)
    print("serving", flush=True)
    both.serve()
    left = {name: {"channels": host.channels, "ids": host.ids} for name, host in both.hosts.items()}
    print(json.dumps(left), flush=True)


if __name__ == "__main__":
    main()
