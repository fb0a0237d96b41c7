"""Runs one program on the native switch and on the oracle, so that tests can compare them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

from json_builder import Json

from weft.switch.backend import Digest, PacketIn, StreamEvent, SwitchBackend
from weft.switch.bmv2json import load_program
from weft.switch.native import NativeSwitch
from weft.switch.oracle import OracleSwitch
from weft.switch.trace.events import CopyTrace

CPU_PORT = 510


class Twin:
    """Both switches with the same program; `both` does the same to each."""

    def __init__(self, document: Json | bytes) -> None:
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.program = load_program(data)
        self.native = NativeSwitch(name="native")
        self.oracle = OracleSwitch(CPU_PORT)
        # Generated programs would drive all others out of the cache, which stays on for the rest of the process:
        # without it every fabric compiles its program anew.
        with patch.dict(os.environ, WEFT_CACHE_DIR=""):
            self.both(lambda switch: switch.load(self.program))

    def both(self, act: Callable[[SwitchBackend], Any]) -> None:
        act(self.native)
        act(self.oracle)

    def process(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        """What leaves; asserts that both switches say the same. Copies may leave in any order."""
        native = sorted(self.native.process(port, data))
        oracle = [(output.port, output.data) for output in self.oracle.process(port, data)]
        events = _events(self.oracle)
        oracle += [(CPU_PORT, event.data) for event in events if isinstance(event, PacketIn)]
        assert native == sorted(oracle)
        native_digests = [event for event in _events(self.native) if isinstance(event, Digest)]
        assert native_digests == [event for event in events if isinstance(event, Digest)]
        return native

    def trace(self, port: int, data: bytes) -> CopyTrace:
        """Return the packet's trace; asserts that both switches report the same. Call native.trace.start() first."""
        expected = CopyTrace()
        self.oracle.process(port, data, trace=expected)
        self.native.process(port, data)
        (native,) = self.native.trace.take()
        assert native.root == expected
        return expected


def _events(switch: SwitchBackend) -> list[StreamEvent]:
    events = []
    while (event := switch.wait_stream_event(0)) is not None:
        events.append(event)
    return events
