"""Traces of packets through a program on a switch of its own, which `weft trace PROGRAM` shows."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

from weft.cache import UnreadableFileError, read_bytes
from weft.commands.tracing_output import TraceOutput
from weft.compiler import CompileError, compile_file
from weft.errors import BadInputError, translated
from weft.switch.backend import UnsupportedProgramError
from weft.switch.bmv2json import MAX_DOCUMENT_BYTES, Bmv2JsonError, Program, load_program
from weft.switch.debug.condition_tokens import ConditionError
from weft.switch.debug.conditions import Condition
from weft.switch.native import NativeSwitch
from weft.switch.stf.errors import StfError
from weft.switch.stf.parser import parse_file
from weft.switch.stf.script import run_script
from weft.switch.stf.statements import CheckCounter, Expect, NoPacket, Packet
from weft.switch.stf.target import CPU_PORT, Target
from weft.switch.trace.events import PacketTrace

DEFAULT_PORT = 1
MAX_CAPTURE_BYTES = 256 << 20


@dataclass(frozen=True)
class ProgramToTrace:
    """Request of `weft trace PROGRAM`: packets are hexadecimal digits or capture files."""

    path: Path
    packets: tuple[str, ...]
    port: int | None
    most_packets: int | None
    script: Path | None
    when: str | None


def trace_program(asked: ProgramToTrace, output: TraceOutput) -> None:
    """Trace packets through a P4 program or BMv2 JSON.

    They come in by the port (None: 1) after the script's entries have been written. Without any, the script's own
    packets are traced, where it has them.

    Raises:
        BadInputError: the program, script or a packet cannot be used.
    """
    program = _load(asked.path)
    frames = [frame for packet in asked.packets for frame in _frames(packet)]
    if not frames and asked.script is None:
        raise BadInputError(f"no packet for {asked.path}: give --packet HEX, --packet FILE.pcap or --stf FILE")
    condition = condition_of(asked.when, program)
    switch = NativeSwitch(name="trace", cpu_port=CPU_PORT)
    switch.load(program)
    switch.trace.start()
    traces: list[PacketTrace] = []
    if asked.script is not None:
        traces += _run_script(asked.script, switch, program, with_packets=not frames)
    for frame in frames:
        switch.process(DEFAULT_PORT if asked.port is None else asked.port, frame)
        traces += switch.trace.take()
    left = len(traces) if asked.most_packets is None else asked.most_packets
    for trace in traces:
        if not left:
            break
        if condition is None or condition.holds(trace):
            left -= 1
            output.show_trace(program, trace)
        else:
            output.unseen.others += 1


def condition_of(text: str | None, program: Program) -> Condition | None:
    """Read what `--when` says. BadInputError names the column."""
    try:
        return None if text is None else Condition(text, program)
    except ConditionError as error:
        assert text is not None
        raise BadInputError(f"{error.shown(text)}", place="--when") from None


def _load(path: Path) -> Program:
    try:
        document = compile_file(path).json_text() if path.suffix == ".p4" else read_bytes(path, MAX_DOCUMENT_BYTES)
        return load_program(document)
    except CompileError as error:
        raise BadInputError(error) from None
    except (Bmv2JsonError, UnsupportedProgramError) as error:
        raise BadInputError(error, place=path) from None
    except UnreadableFileError as error:
        raise BadInputError(error) from None
    except OSError as error:
        raise BadInputError(f"{error.strerror}", place=path) from None


def _frames(packet: str) -> list[bytes]:
    if packet.endswith((".pcap", ".pcapng")):
        from scapy.error import Scapy_Exception
        from scapy.utils import rdpcap

        try:
            return [bytes(frame) for frame in rdpcap(io.BytesIO(read_bytes(packet, MAX_CAPTURE_BYTES)))]
        except UnreadableFileError as error:
            raise BadInputError(f"--packet {error}") from None
        except OSError as error:
            raise BadInputError(f"{error.strerror or error}", place=f"--packet {packet}") from None
        except (ValueError, EOFError, Scapy_Exception) as error:
            raise BadInputError(f"--packet {packet} cannot be read: {error}") from None
    try:
        return [bytes.fromhex(packet.removeprefix("0x"))]
    except ValueError:
        raise BadInputError(f"--packet {packet!r} is neither hexadecimal digits nor a .pcap file") from None


def _run_script(script: Path, switch: NativeSwitch, program: Program, *, with_packets: bool) -> list[PacketTrace]:
    traces: list[PacketTrace] = []

    def process(port: int, data: bytes) -> list[tuple[int, bytes]]:
        outputs = switch.process(port, data)
        traces.extend(switch.trace.take())
        return outputs

    checks = (Expect, NoPacket, CheckCounter)
    left_out = checks if with_packets else (*checks, Packet)
    with translated(StfError, BadInputError):
        statements = [each for each in parse_file(script) if not isinstance(each, left_out)]
    failures = run_script(statements, Target(switch, process), program)
    # Without the script's own expectations, packets that leave are no failure; statements that are refused are.
    refused = [failure for failure in failures if failure.startswith(str(script))]
    if refused:
        raise BadInputError("; ".join(refused))
    return traces
