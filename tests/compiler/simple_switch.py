"""Runs STF scripts on the reference switch: its packets come from capture files, its entries by its command line."""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import time
from collections import defaultdict
from pathlib import Path

from switch.backend import (
    ActionCall,
    ExactMatch,
    LpmMatch,
    Match,
    RangeMatch,
    TableAction,
    TableEntry,
    TernaryMatch,
)
from switch.bmv2json import Program
from weft.stf.expectations import Ports
from weft.stf.statements import (
    Add,
    CheckCounter,
    Expect,
    Packet,
    Remove,
    SetDefault,
    Statement,
    SwitchCommand,
)
from weft.stf.tables import ScriptedTables

SIMPLE_SWITCH = shutil.which("simple_switch")
COMMAND_LINE = shutil.which("simple_switch_CLI")
# When there are commands, the switch waits this long for them before it reads its packets.
WAIT_BEFORE_PACKETS_S = 2
QUIET_S = 1.0
LATEST_S = 20.0
_GREATEST_PRIORITY = 1 << 16
_CAPTURE_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 16, 1)


class CommandLines:
    """What a script does to tables, as lines for BMv2's command line (a backend as ScriptedTables takes it)."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.lines: list[str] = []

    def table_insert(self, table: str, entry: TableEntry) -> None:
        """table_add."""
        words = ["table_add", table, *self._action(entry.action)[:1], *map(_match, entry.key), "=>"]
        words += self._action(entry.action)[1:]
        if self._program.tables[table].needs_priority:
            words.append(str(_GREATEST_PRIORITY - entry.priority))
        self.lines.append(" ".join(words))

    def table_set_default(self, table: str, action: TableAction | None) -> None:
        """table_set_default."""
        assert action is not None
        self.lines.append(" ".join(["table_set_default", table, *self._action(action)]))

    def _action(self, action: TableAction) -> list[str]:
        assert isinstance(action, ActionCall), "tables with members are not tried on the reference switch"
        return [action.action, *(f"{value:#x}" for value in action.arguments)]


def _match(match: Match) -> str:
    match match:
        case ExactMatch():
            return f"{match.value:#x}"
        case LpmMatch():
            return f"{match.value:#x}/{match.prefix_length}"
        case TernaryMatch():
            return f"{match.value:#x}&&&{match.mask:#x}"
        case RangeMatch():
            return f"{match.low:#x}->{match.high:#x}"
    raise AssertionError(match)


def command_lines(statements: list[Statement], program: Program) -> list[str] | None:
    """The lines of a script; None if it depends on more than the state before its first packet."""
    backend = CommandLines(program)
    tables = ScriptedTables(backend, program)  # type: ignore[arg-type]
    sent = False
    for statement in statements:
        sent = sent or isinstance(statement, Packet)
        if isinstance(statement, Remove | CheckCounter) or (
            sent and isinstance(statement, Add | SetDefault | SwitchCommand)
        ):
            return None
        if isinstance(statement, Add):
            tables.add(statement)
        elif isinstance(statement, SetDefault):
            tables.set_default(statement)
        elif isinstance(statement, SwitchCommand):
            words = [statement.command, statement.name, *map(str, statement.numbers)]
            backend.lines.append(" ".join(filter(None, words)))
    return backend.lines


def differences(json_text: str, statements: list[Statement], lines: list[str], folder: Path) -> list[str]:
    """What the reference switch does other than the script says, when it runs this JSON."""
    ports = Ports()
    captures: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)
    for number, statement in enumerate(statements):
        if isinstance(statement, Packet):
            captures[statement.port].append((number, statement.data))
        elif isinstance(statement, Expect):
            ports.expected[statement.port].append(statement)
    for port in {*captures, *ports.expected}:
        _write_capture(folder / f"port{port}_in.pcap", captures[port])
    document = folder / "program.json"
    document.write_text(json_text, encoding="utf-8")
    with (folder / "switch.log").open("w", encoding="utf-8") as log:
        thrift_port = _free_port()
        assert SIMPLE_SWITCH is not None
        interfaces = [word for port in {*captures, *ports.expected} for word in ("-i", f"{port}@port{port}")]
        wait_s = WAIT_BEFORE_PACKETS_S if lines else 0
        command = [
            SIMPLE_SWITCH,
            "--use-files",
            str(wait_s),
            "--thrift-port",
            str(thrift_port),
        ]
        command += [
            "--notifications-addr",
            f"ipc://{folder}/notifications.ipc",
            "--log-console",
            "-L",
            "error",
        ]
        switch = subprocess.Popen(
            [*command, *interfaces, str(document)], cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            _send_commands(lines, thrift_port, switch)
            _until_quiet(folder, ports, wait_s, switch)
        finally:
            switch.kill()
            switch.wait()
    if switch.returncode != -9:
        return [f"the switch ended by itself: {(folder / 'switch.log').read_text(encoding='utf-8')}"]
    for port in {*captures, *ports.expected}:
        ports.sent[port] = _read_capture(folder / f"port{port}_out.pcap")
    return ports.differences()


def _send_commands(lines: list[str], thrift_port: int, switch: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + LATEST_S
    while switch.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", thrift_port), timeout=1).close()
            break
        except OSError:
            time.sleep(0.02)
    if not lines or switch.poll() is not None:
        return
    assert COMMAND_LINE is not None
    done = subprocess.run(
        [COMMAND_LINE, "--thrift-port", str(thrift_port)],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=LATEST_S,
    )
    problems = [line for line in done.stdout.splitlines() if "Error" in line or "Invalid" in line]
    assert not problems, problems


def _until_quiet(folder: Path, ports: Ports, wait_s: int, switch: subprocess.Popen[bytes]) -> None:
    """Until what is expected has come, and nothing more for a while."""
    wanted = sum(map(len, ports.expected.values()))
    deadline = time.monotonic() + wait_s + QUIET_S
    latest = time.monotonic() + LATEST_S
    before = 0
    while switch.poll() is None and time.monotonic() < min(deadline, latest):
        time.sleep(0.05)
        count = sum(len(_read_capture(each)) for each in folder.glob("*_out.pcap"))
        if count != before:
            before, deadline = count, time.monotonic() + QUIET_S
        if wanted and count >= wanted:
            deadline = min(deadline, time.monotonic() + 0.2)
            wanted = 0


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _write_capture(path: Path, packets: list[tuple[int, bytes]]) -> None:
    """A capture file; the number of a packet is its time."""
    records = (struct.pack("<IIII", at, 0, len(data), len(data)) + data for at, data in packets)
    path.write_bytes(_CAPTURE_HEADER + b"".join(records))


def _read_capture(path: Path) -> list[bytes]:
    data = path.read_bytes() if path.exists() else b""
    packets: list[bytes] = []
    at = len(_CAPTURE_HEADER)
    while at + 16 <= len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        if at + 16 + length > len(data):
            break
        packets.append(data[at + 16 : at + 16 + length])
        at += 16 + length
    return packets
