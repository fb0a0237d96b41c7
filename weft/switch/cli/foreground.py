"""Runs one switch until a signal comes, for `weft switch`."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from finsy.proto import p4i, p4r
from google.protobuf import text_format

from weft.cache import UnreadableFileError, read_bytes
from weft.errors import Refusal
from weft.switch.backend import BackendError
from weft.switch.bmv2json import MAX_DOCUMENT_BYTES, Bmv2JsonError, load_program
from weft.switch.cli.logs import LogOptions, require_complete
from weft.switch.cli.packet_output import PacketLog, PacketTrees
from weft.switch.daemon.config import DaemonConfig
from weft.switch.daemon.daemon import Daemon
from weft.switch.daemon.process import on_termination
from weft.switch.daemon.wired_switches import WiredSwitch
from weft.switch.p4runtime.errors import RequestError

LOG_INTERVAL_S = 0.2
Beside = Callable[[str], contextlib.AbstractContextManager[None]]
"""Runs something next to a switch, given where it serves P4Runtime."""
_LOGGER = logging.getLogger(__name__)


def alone(_address: str) -> contextlib.AbstractContextManager[None]:
    """Run nothing next to a switch."""
    return contextlib.nullcontext()


class StartError(Refusal, ValueError):
    """The program, its P4Info or the capture directory cannot be used."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a switch: program, P4Info, captures, logs.

    `dump_bytes` of every packet are logged (0: none). The first `trace_packets` are printed as trees, unless every
    packet is logged or dumped.
    """

    program: Path | None = None
    p4info: Path | None = None
    capture_directory: Path | None = None
    log: LogOptions = field(default_factory=LogOptions)
    dump_bytes: int = 0
    trace_packets: int = 0
    captures_without_shims: bool = False

    @property
    def logs_packets(self) -> bool:
        """True if every packet is logged or dumped."""
        return self.log.asked_for and (self.log.follows_packets or self.dump_bytes > 0)


class Foreground:
    """A daemon of one switch. Raises StartError or OSError if it cannot start."""

    def __init__(self, config: DaemonConfig, options: Options) -> None:
        self._options = options
        self._stopping = threading.Event()
        self._reported: set[str] = set()
        self._daemon = Daemon(config)
        try:
            self._packet_output = self._make_packet_output()
            self._start_captures()
            self._load()
            self._daemon.serve()
        except BaseException:
            self._daemon.close()
            raise

    @property
    def _switch(self) -> WiredSwitch:
        return next(iter(self._daemon.wiring.switches.values()))

    def _make_packet_output(self) -> PacketLog | PacketTrees | None:
        """Return None if packets are not followed; then only log_msg is logged, if a log was requested."""
        log, options, switch = self._options.log, self._options, self._switch.switch
        if log.asked_for and not log.follows_packets:
            switch.native.set_logging(log.level <= logging.INFO)
        if options.logs_packets:
            return PacketLog(switch, with_steps=log.follows_packets, dump_bytes=options.dump_bytes)
        return PacketTrees(switch, options.trace_packets) if options.trace_packets else None

    def _load(self) -> None:
        program, info = self._options.program, self._options.p4info
        if program is None:
            return
        try:
            document = read_bytes(program, MAX_DOCUMENT_BYTES)
            if info is None:
                self._switch.switch.load(load_program(document))
                return
            p4info = text_format.Parse(read_bytes(info, MAX_DOCUMENT_BYTES), p4i.P4Info())
            config = p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=document)
            next(iter(self._daemon.devices.values())).load(config)
        except UnreadableFileError as error:
            raise StartError(error) from None
        except OSError as error:
            raise StartError(f"{error.strerror}", place=error.filename) from None
        except (Bmv2JsonError, BackendError) as error:
            raise StartError(error, place=program) from None
        except (text_format.ParseError, ValueError) as error:  # ValueError: an enum beyond 32 bits, no UTF-8
            raise StartError(error, place=info) from None
        except RequestError as error:
            raise StartError(error.message) from None

    def _start_captures(self) -> None:
        directory = self._options.capture_directory
        if directory is None:
            return
        if not directory.is_dir():
            raise StartError(f"{directory} is not a directory", place="--pcap")
        engine = self._daemon.wiring.engine
        origin_ns = time.time_ns() - engine.now_ps // 1000
        for port in self._switch.ports.values():
            port.capture_by_direction(directory, origin_ns, self._options.captures_without_shims)

    def run(self, beside: Beside = alone) -> None:
        """Serve until SIGINT or SIGTERM.

        Raises OSError if `beside` does, or at the end if a capture or the log is incomplete.
        """
        with on_termination(self._stopping.set):
            try:
                with beside(self._daemon.server.address):
                    _LOGGER.info("P4Runtime on %s", self._daemon.server.address)
                    self._serve()
            finally:
                self._write_log()
                self._daemon.close()
        require_complete()

    def _serve(self) -> None:
        while not self._stopping.wait(LOG_INTERVAL_S):
            self._write_log()
            failure = self._daemon.wiring.engine.failure
            if failure is not None:
                _LOGGER.error("the engine has stopped: %s", failure)
                break

    def _write_log(self) -> None:
        if self._packet_output is not None:
            self._packet_output.write()
        for message in self._switch.switch.native.take_log():
            _LOGGER.info("%s", message)
        for path, number in self._daemon.wiring.incomplete_captures().items():
            if path not in self._reported:
                self._reported.add(path)
                _LOGGER.error("capture file '%s' is incomplete: %s", path, os.strerror(number))
