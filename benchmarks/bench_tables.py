"""Large tables: packets per second as they grow, P4Runtime inserts per second, memory per entry.

    .venv/bin/python benchmarks/bench_tables.py [--json] [--realtime]

Lookups: 20,000 different packets that all match go through a program with one table of each kind, in memory, once
with 100 entries in it and once with many. Keys, prefix lengths (8 to 32) and masks (a prefix of either address,
a port or any) are random, seeded. Inserts: batches of 1,000 by gRPC from this process into a `weft switch`;
memory is how much that process has grown in total.
"""

from __future__ import annotations

import contextlib
import queue
import random
import resource
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
from figures import Figure, argument_parser, report
from finsy.proto import p4r, p4r_grpc
from scheduling import pin_this_process

from weft.controller.pipeline import Pipeline
from weft.scenario.program import Program, compile_program
from weft.switch.backend import ActionCall, ExactMatch, LpmMatch, Match, TableEntry, TableKey, TernaryMatch
from weft.switch.bmv2json import load_program
from weft.switch.native import NativeSwitch
from weft.switch.p4runtime.values import encode
from weft.system.child_processes import python_environment

SOURCE = Path(__file__).parent / "tables.p4"
CONTROL = "TablesIngress."
FEW = 100
PACKETS = 20_000
ROUNDS = 5
PASSES = 10
BATCH = 1_000
EXACT_KEY_BYTES = 8
GOAL_SLOWDOWN = 3
GOAL_INSERTS_PER_S = 10_000
GOAL_ENTRY_BYTES = 200
START_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Rule:
    """An entry's key and priority, and how to make a packet that it matches."""

    key: TableKey
    priority: int
    packet: Callable[[random.Random], bytes]


def packet(
    kind: int, *, exact: int = 0, address: int = 0, source: int = 0, destination: int = 0, port: int = 0
) -> bytes:
    """A request for a table."""
    return struct.pack("!HQIIIH", kind, exact, address, source, destination, port) + bytes(32)


def random_prefix(rng: random.Random) -> tuple[int, int]:
    """Value and mask of a prefix of 8 to 32 bits."""
    mask = (0xFFFFFFFF << 32 - rng.randint(8, 32)) & 0xFFFFFFFF
    return rng.getrandbits(32) & mask, mask


def fill(value: int, mask: int, rng: random.Random) -> int:
    """A value that matches."""
    return value | rng.getrandbits(32) & ~mask


def exact_rule(rng: random.Random) -> Rule:
    """Of exact_table."""
    value = rng.getrandbits(64)
    return Rule((ExactMatch(value),), 0, lambda _: packet(0, exact=value))


def lpm_rule(rng: random.Random) -> Rule:
    """Of lpm_table."""
    value, mask = random_prefix(rng)
    key = (LpmMatch(value, mask.bit_count()),)
    return Rule(key, 0, lambda rng: packet(1, address=fill(value, mask, rng)))


def ternary_rule(rng: random.Random) -> Rule:
    """Of ternary_table; 25 times 25 times 2 masks."""
    (source, source_mask), (destination, destination_mask) = random_prefix(rng), random_prefix(rng)
    port = rng.getrandbits(16)
    key = (
        TernaryMatch(source, source_mask),
        TernaryMatch(destination, destination_mask),
        TernaryMatch(port, 0xFFFF) if rng.random() < 0.5 else TernaryMatch(0, 0),
    )
    return Rule(
        key,
        rng.randint(1, 1 << 20),
        lambda rng: packet(
            2,
            source=fill(source, source_mask, rng),
            destination=fill(destination, destination_mask, rng),
            port=port,
        ),
    )


TABLES: dict[str, tuple[Callable[[random.Random], Rule], int]] = {
    "exact": (exact_rule, 100_000),
    "lpm": (lpm_rule, 100_000),
    "ternary": (ternary_rule, 10_000),
}


def nanoseconds(program: Program, kind: str, entries: int) -> float:
    """Of a packet through a table of this kind and size: the best of several rounds."""
    rng = random.Random(kind)
    switch = NativeSwitch(name=kind)
    switch.load(load_program(program.json.read_bytes()))
    choices = rules_of(kind, entries)
    action = ActionCall(f"{CONTROL}to_port", (1, 0))
    for rule in choices:
        switch.table_insert(f"{CONTROL}{kind}_table", TableEntry(rule.key, action, rule.priority))
    packets = [(1, rng.choice(choices).packet(rng)) for _ in range(PACKETS)]
    best_s = float("inf")
    for _ in range(ROUNDS):
        start_s = time.thread_time()
        left = switch.native.process_repeatedly(packets, PASSES * PACKETS)
        best_s = min(best_s, time.thread_time() - start_s)
        if left != PASSES * PACKETS:
            raise RuntimeError(f"{PASSES * PACKETS - left} packets matched no {kind} entry")
    return best_s / (PASSES * PACKETS) * 1e9


def lookups(program: Program) -> Iterator[Figure]:
    """Figures of packets through small and large tables."""
    for kind, (_, many) in TABLES.items():
        few_ns, many_ns = nanoseconds(program, kind, FEW), nanoseconds(program, kind, many)
        yield Figure(f"{kind}, {FEW} entries", few_ns, "ns/packet")
        yield Figure(
            f"{kind}, {many:,} entries",
            many_ns,
            "ns/packet",
            f"{FEW} entries",
            many_ns / few_ns,
            GOAL_SLOWDOWN,
            at_most=True,
        )


@contextlib.contextmanager
def served_switch(program: Program) -> Iterator[tuple[p4r_grpc.P4RuntimeStub, int]]:
    """A `weft switch` that runs the program, with this process as its primary controller; and its process id."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "weft", "switch", str(program.json), "--p4info", str(program.p4info)]
    process = subprocess.Popen(
        [*command, "--log-level", "warn", "--device-id", "1", "--grpc-server-addr", address],
        env=python_environment(),
    )
    requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
    channel = grpc.insecure_channel(address, options=[("grpc.max_send_message_length", -1)])
    try:
        grpc.channel_ready_future(channel).result(timeout=START_PATIENCE_S)
        stub = p4r_grpc.P4RuntimeStub(channel)
        responses = stub.StreamChannel(iter(requests.get, None))
        arbitration = p4r.MasterArbitrationUpdate(device_id=1, election_id=p4r.Uint128(low=1))
        requests.put(p4r.StreamMessageRequest(arbitration=arbitration))
        next(responses)
        yield stub, process.pid
    finally:
        requests.put(None)
        channel.close()
        process.terminate()
        process.wait()


def resident_bytes(process_id: int) -> int:
    """Memory that a process occupies."""
    pages = int(Path(f"/proc/{process_id}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def rules_of(kind: str, count: int) -> list[Rule]:
    """Different ones, the same in every run."""
    make, _ = TABLES[kind]
    rng = random.Random(kind)
    rules: dict[tuple[TableKey, int], Rule] = {}
    while len(rules) < count:
        rule = make(rng)
        rules[rule.key, rule.priority] = rule
    return list(rules.values())


def put_match(entry: p4r.TableEntry, field_id: int, match: Match) -> None:
    """Add a match field, unless it matches everything."""
    field = p4r.FieldMatch(field_id=field_id)
    if isinstance(match, ExactMatch):
        field.exact.value = encode(match.value)
    elif isinstance(match, LpmMatch):
        field.lpm.value, field.lpm.prefix_len = encode(match.value), match.prefix_length
    elif isinstance(match, TernaryMatch) and match.mask:
        field.ternary.value, field.ternary.mask = encode(match.value), encode(match.mask)
    else:
        return
    entry.match.append(field)


def write_requests(program: Program, kind: str, count: int) -> Iterator[p4r.WriteRequest]:
    """INSERTs in batches."""
    schema = Pipeline.load(program.p4info, program.json).schema()
    table, action = schema.tables[f"{kind}_table"], schema.actions["to_port"]
    rules = rules_of(kind, count)
    for first in range(0, len(rules), BATCH):
        request = p4r.WriteRequest(device_id=1, election_id=p4r.Uint128(low=1))
        for rule in rules[first : first + BATCH]:
            entry = request.updates.add(type=p4r.Update.INSERT).entity.table_entry
            entry.table_id, entry.priority = table.id, rule.priority
            for field_id, match in enumerate(rule.key, start=1):
                put_match(entry, field_id, match)
            entry.action.action.action_id = action.id
            entry.action.action.params.add(param_id=1, value=b"\x01")
            entry.action.action.params.add(param_id=2, value=b"\x02\x00\x00\x00\x00\x01")
        yield request


def inserts(program: Program) -> Iterator[Figure]:
    """Figures of filling each table over P4Runtime."""
    for kind, (_, count) in TABLES.items():
        yield from inserts_of(program, kind, count)


def inserts_of(program: Program, kind: str, count: int) -> Iterator[Figure]:
    """Rate of inserts into one table; of exact entries the memory, too."""
    first, *requests = write_requests(program, kind, count + BATCH)
    with served_switch(program) as (stub, process_id):
        stub.Write(first)  # what a first write allocates once belongs to no entry
        before_bytes = resident_bytes(process_id)
        start_s = time.monotonic()
        for request in requests:
            stub.Write(request)
        elapsed_s = time.monotonic() - start_s
        grown_bytes = resident_bytes(process_id) - before_bytes
    yield Figure(f"P4Runtime inserts, {kind}", count / elapsed_s, "entries/s", goal=GOAL_INSERTS_PER_S)
    if kind != "exact":
        return
    yield Figure(
        f"memory without a key of {EXACT_KEY_BYTES} B",
        grown_bytes / count - EXACT_KEY_BYTES,
        "B/entry",
        goal=GOAL_ENTRY_BYTES,
        at_most=True,
    )


def main() -> None:
    """Print the figures."""
    parser = argument_parser(__doc__)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = compile_program(SOURCE, Path(folder))
        figures = list(inserts(program))
        pin_this_process(1, realtime=options.realtime)
        figures += lookups(program)
    report("large tables", figures, as_json=options.json)


if __name__ == "__main__":
    main()
