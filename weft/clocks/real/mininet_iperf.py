"""`iperf h1 h2` at Mininet's prompt.

Mininet's own looks for its server by telnet and waits for that connection's report, which iperf from 2.0.14 on does not
make, so that it never ends (Mininet's issue 1060); nor does it end where connections are blocked.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence

from mininet.log import output
from mininet.net import Mininet
from mininet.node import Host

_PATIENCE_S = 5.0
"""For what connecting and reporting may take beyond the measurement."""
_RATE = re.compile(r"[\d.]+ \w+/sec")


class MeasuringMininet(Mininet):  # type: ignore[misc]
    """Mininet with an `iperf` that ends."""

    def iperf(
        self,
        hosts: Sequence[Host] | None = None,
        l4Type: str = "TCP",
        udpBw: str = "10M",
        fmt: str | None = None,
        seconds: int = 5,
        port: int = 5001,
    ) -> list[str]:
        """Run iperf from the first host to the second; return what server and client measured, after the offered rate.

        Arguments are Mininet's. Empty texts stand for what was not measured: nothing came through.
        """
        if shutil.which("iperf") is None:
            output("*** iperf is not installed (Debian and Ubuntu: apt install iperf)\n")
            return ["", ""]
        client, server = hosts or (self.hosts[0], self.hosts[-1])
        output(f"*** Iperf: testing {l4Type} bandwidth between {client} and {server}\n")
        is_udp = l4Type == "UDP"
        command = ["iperf", "-p", str(port), *(["-u"] if is_udp else []), *(["-f", fmt] if fmt else [])]
        offered = ["-b", udpBw] if is_udp else []
        with _output_of(server, [*command, "-s"]) as served:
            served.until("listening", _PATIENCE_S)
            with _output_of(client, [*command, "-t", str(seconds), "-c", server.IP(), *offered]) as sent:
                sent.until("/sec", seconds + _PATIENCE_S)
            if _RATE.search(sent.text):
                # What waits in a slow link's queue comes when the client has ended.
                served.until("/sec", seconds + _PATIENCE_S)
        rates = [(_RATE.findall(each.text) or [""])[-1] for each in (served, sent)]
        if not all(rates):
            output(f"*** nothing came from {client} to {server} that iperf could measure\n")
        results = [udpBw, *rates] if is_udp else rates
        output(f"*** Results: {results}\n")
        return results


class _Output:
    """Output of a program on a host so far."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.text = ""

    def until(self, wanted: str, seconds: float) -> None:
        """Read on until it has printed something, ends, or the time is over."""
        assert self._process.stdout is not None
        end = time.monotonic() + seconds
        descriptor = self._process.stdout.fileno()
        while wanted not in self.text and (left := end - time.monotonic()) > 0:
            if select.select([descriptor], [], [], left)[0]:
                read = os.read(descriptor, 65536)
                if not read:
                    return
                self.text += read.decode(errors="replace")


@contextlib.contextmanager
def _output_of(host: Host, command: list[str]) -> Iterator[_Output]:
    """Run a program on a host while inside."""
    process = host.popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield _Output(process)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
