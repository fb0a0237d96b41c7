"""The same requests to simple_switch_grpc and to both our switches: the same codes, the same read back.

Where the reference differs from the specification, `DEVIATIONS` says how; nothing else may differ.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4i, p4r, rpc_code
from google.protobuf import text_format
from p4runtime_client import P4RuntimeClient, batch_errors

from weft.compiler import compile_artifacts
from weft.switch.native import NativeSwitch
from weft.switch.oracle import OracleSwitch
from weft.switch.p4runtime.device import Device
from weft.switch.p4runtime.service import Server

PROGRAM = Path(__file__).parent / "programs" / "entities.p4"
START_TIMEOUT_S = 20.0

pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on PATH"),
]


@pytest.fixture(scope="module")
def config() -> p4r.ForwardingPipelineConfig:
    made = compile_artifacts(PROGRAM)
    p4info = text_format.Parse(made.p4info_text, p4i.P4Info())
    return p4r.ForwardingPipelineConfig(p4info=p4info, p4_device_config=made.json_text.encode())


@contextmanager
def reference(directory: Path) -> Iterator[str]:
    with socket.socket() as grpc_probe, socket.socket() as thrift_probe:
        for probe in (grpc_probe, thrift_probe):
            probe.bind(("127.0.0.1", 0))
        port, thrift = grpc_probe.getsockname()[1], thrift_probe.getsockname()[1]
    command = ["simple_switch_grpc", "--no-p4", "--device-id", "1", "--thrift-port", str(thrift)]
    command += ["--notifications-addr", f"ipc://{directory}/notifications.ipc"]
    command += ["--", "--grpc-server-addr", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            channel = grpc.insecure_channel(f"127.0.0.1:{port}")
            grpc.channel_ready_future(channel).result(START_TIMEOUT_S)
            channel.close()
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


@contextmanager
def ours(switch: OracleSwitch | NativeSwitch) -> Iterator[str]:
    server = Server({1: Device(1, switch, 510)}, "127.0.0.1:0")
    server.start()
    yield server.address
    server.stop()


class Names:
    """Writes `$name` in a request's text as the id of that object in P4Info."""

    def __init__(self, info: p4i.P4Info) -> None:
        self._ids = {
            each.preamble.name.rpartition(".")[2]: each.preamble.id
            for section in (info.tables, info.actions, info.counters, info.meters, info.action_profiles)
            for each in section
        }

    def entity(self, text: str) -> p4r.Entity:
        for name in sorted(self._ids, key=len, reverse=True):
            text = text.replace(f"${name}", str(self._ids[name]))
        return text_format.Parse(text, p4r.Entity())


def action(name: str, *arguments: str) -> str:
    params = " ".join(f'params {{ param_id: {n} value: "{value}" }}' for n, value in enumerate(arguments, 1))
    return f"action {{ action {{ action_id: ${name} {params} }} }}"


def exact(value: str = "\\001", more: str = "", call: str = action("send", "\\003")) -> str:
    key = f'match {{ field_id: 1 exact {{ value: "{value}" }} }} match {{ field_id: 2 exact {{ value: "\\002" }} }}'
    return f"table_entry {{ table_id: $exact_table {key} {call} {more} }}"


def hits(value: str) -> str:
    return f"direct_counter_entry {{ {exact(value, call='')} data {{ packet_count: 4 }} }}"


def lpm(
    value: str = "\\012\\000\\000\\000", length: int = 8, call: str = action("send", "\\003"), more: str = ""
) -> str:
    key = f'match {{ field_id: 1 lpm {{ value: "{value}" prefix_len: {length} }} }}'
    return f"table_entry {{ table_id: $lpm_table {key} {call} {more} }}"


def ternary(match: str, priority: int, more: str = "", call: str = action("watch")) -> str:
    return f"table_entry {{ table_id: $ternary_table {match} priority: {priority} {call} {more} }}"


def masked(value: str, mask: str) -> str:
    return f'match {{ field_id: 1 ternary {{ value: "{value}" mask: "{mask}" }} }}'


def ranged(low: str, high: str) -> str:
    return f'match {{ field_id: 2 range {{ low: "{low}" high: "{high}" }} }}'


def member(number: int, port: str = "\\003") -> str:
    call = action("send", port)
    return f"action_profile_member {{ action_profile_id: $choice member_id: {number} {call[len('action { ') : -2]} }}"


def group(number: int, members: str, max_size: int = 4) -> str:
    return f"action_profile_group {{ action_profile_id: $choice group_id: {number} {members} max_size: {max_size} }}"


def selected(target: str, value: str = "\\001") -> str:
    key = f'match {{ field_id: 1 exact {{ value: "{value}" }} }}'
    return f"table_entry {{ table_id: $selector_table {key} action {{ {target} }} }}"


def multicast(number: int, *replicas: tuple[int, int]) -> str:
    listed = " ".join(f"replicas {{ egress_port: {port} instance: {rid} }}" for port, rid in replicas)
    return f"packet_replication_engine_entry {{ multicast_group_entry {{ multicast_group_id: {number} {listed} }} }}"


def session(number: int, *ports: int, more: str = "") -> str:
    listed = " ".join(f"replicas {{ egress_port: {port} instance: 1 }}" for port in ports)
    return f"packet_replication_engine_entry {{ clone_session_entry {{ session_id: {number} {listed} {more} }} }}"


CONSTANT_KEY = 'table_entry { table_id: $constant_table match { field_id: 1 exact { value: "\\001" } }'
CONSTANT_INSERT = CONSTANT_KEY.replace("001", "011") + action("NoAction") + "}"
CONSTANT_DELETE = CONSTANT_KEY + "}"
COUNTER_BEYOND = "counter_entry { counter_id: $indirect index { index: 16 } data { packet_count: 5 } }"
METER_BEYOND = "meter_entry { meter_id: $police index { index: 16 } config { cir: 1 pir: 1 } }"
METER = "cir: 100 cburst: 10 pir: 200 pburst: 20"
STEPS: list[tuple[str, str]] = [
    ("INSERT", exact()),
    ("INSERT", exact()),
    ("MODIFY", exact(call=action("drop"))),
    ("MODIFY", exact("\\007")),
    ("DELETE", exact("\\007")),
    ("INSERT", exact("\\001\\000")),
    ("INSERT", exact("\\000\\004")),
    ("INSERT", exact("\\005", call=action("send"))),
    ("INSERT", exact("\\005", call=action("send", "\\002\\000"))),
    ("INSERT", exact("\\005", call=action("account", "\\001"))),
    ("INSERT", exact("\\005", call=action("NoAction"))),
    ("INSERT", exact("\\005", more="priority: 1")),
    ("INSERT", exact("\\005", call="")),
    ("INSERT", exact("\\005", more="counter_data { packet_count: 3 byte_count: 9 }")),
    ("INSERT", exact("\\006", more=f"meter_config {{ {METER} }}")),
    ("INSERT", exact("\\006")),
    ("INSERT", exact("\\010")),
    ("MODIFY", hits("\\005")),
    ("MODIFY", hits("\\011")),
    ("MODIFY", f"table_entry {{ table_id: $exact_table is_default_action: true {action('drop')} }}"),
    ("INSERT", f"table_entry {{ table_id: $exact_table is_default_action: true {action('drop')} }}"),
    ("MODIFY", "table_entry { table_id: $exact_table is_default_action: true }"),
    ("INSERT", lpm()),
    ("INSERT", lpm("\\012\\001\\000\\000", 16, action("account", "\\001"))),
    ("INSERT", lpm("\\012\\001\\000\\001", 16)),
    ("INSERT", lpm(length=0)),
    ("INSERT", lpm(length=33)),
    ("INSERT", lpm("\\013\\000\\000\\000", more="idle_timeout_ns: 5000000000")),
    ("INSERT", f"table_entry {{ table_id: $lpm_table {action('NoAction')} }}"),
    ("MODIFY", f"table_entry {{ table_id: $lpm_table is_default_action: true {action('drop')} }}"),
    ("MODIFY", lpm(call="")),
    ("INSERT", ternary(masked("\\012", "\\377"), 3)),
    ("INSERT", ternary(masked("\\013", "\\374"), 3)),
    ("INSERT", ternary(masked("\\000", "\\000"), 3)),
    ("INSERT", ternary(masked("\\010", "\\374"), 0)),
    ("INSERT", ternary(masked("\\010", "\\374") + ranged("\\001", "\\011"), 4, f"meter_config {{ {METER} }}")),
    ("INSERT", ternary(ranged("\\011", "\\001"), 5)),
    ("INSERT", ternary(ranged("\\000", "\\377"), 5)),
    ("INSERT", ternary('match { field_id: 3 optional { value: "\\001" } }', 6)),
    ("INSERT", ternary("", 7)),
    ("DELETE", ternary("", 7)),
    ("MODIFY", f"table_entry {{ table_id: $ternary_table is_default_action: true {action('watch')} }}"),
    ("INSERT", member(1)),
    ("INSERT", member(1)),
    ("INSERT", member(2, "\\004")),
    ("MODIFY", member(2, "\\005")),
    ("MODIFY", member(9)),
    ("DELETE", member(9)),
    ("INSERT", group(1, "members { member_id: 1 weight: 1 } members { member_id: 2 weight: 2 }")),
    ("INSERT", group(1, "members { member_id: 1 weight: 1 }")),
    ("MODIFY", group(9, "members { member_id: 1 weight: 1 }")),
    ("INSERT", selected("action_profile_group_id: 1")),
    ("INSERT", selected("action_profile_group_id: 9", "\\002")),
    ("INSERT", selected("action_profile_member_id: 1", "\\003")),
    ("INSERT", selected("action_profile_member_id: 9", "\\004")),
    ("INSERT", selected(action("drop")[len("action { "):-2], "\\005")),
    ("DELETE", member(1)),
    ("DELETE", group(1, "")),
    ("DELETE", selected("action_profile_group_id: 1")),
    ("DELETE", group(1, "")),
    ("DELETE", member(2)),
    ("INSERT", CONSTANT_INSERT),
    ("DELETE", CONSTANT_DELETE),
    ("MODIFY", "counter_entry { counter_id: $indirect index { index: 3 } data { packet_count: 5 byte_count: 6 } }"),
    ("MODIFY", COUNTER_BEYOND),
    ("INSERT", "counter_entry { counter_id: $indirect index { index: 3 } data { packet_count: 5 } }"),
    ("MODIFY", f"meter_entry {{ meter_id: $police index {{ index: 3 }} config {{ {METER} }} }}"),
    ("MODIFY", METER_BEYOND),
    ("INSERT", multicast(5, (1, 1), (2, 2))),
    ("INSERT", multicast(5, (1, 1))),
    ("MODIFY", multicast(5, (3, 1))),
    ("MODIFY", multicast(6, (3, 1))),
    ("INSERT", multicast(0, (3, 1))),
    ("INSERT", multicast(7, (3, 1), (3, 1))),
    ("DELETE", multicast(6)),
    ("INSERT", session(6, 1)),
    ("INSERT", session(6, 1)),
    ("MODIFY", session(6, 2)),
    ("INSERT", session(0, 2)),
    ("DELETE", session(7)),
    ("DELETE", session(6)),
    ("INSERT", "table_entry { table_id: 99 }"),
    ("INSERT", "table_entry { }"),
    # behind these the reference holds what it should have refused
    ("INSERT", group(2, "members { member_id: 9 weight: 1 }")),
    ("DELETE", exact("\\005")),
    ("INSERT", exact("")),
]  # fmt: skip
QUERIES = (
    "table_entry { }",
    "table_entry { table_id: $exact_table counter_data { } }",
    "table_entry { table_id: $ternary_table meter_config { } }",
    "table_entry { table_id: $exact_table is_default_action: true }",
    "action_profile_member { action_profile_id: $choice }",
    "action_profile_group { action_profile_id: $choice }",
    "counter_entry { counter_id: $indirect }",
    "meter_entry { meter_id: $police index { index: 3 } }",
    "packet_replication_engine_entry { multicast_group_entry { multicast_group_id: 5 } }",
)
Log = list[tuple[tuple[str, str], str, list[str]]]


def run(address: str, config: p4r.ForwardingPipelineConfig) -> Log:
    """Every step's text, its code, and all that is read back behind it."""
    client = P4RuntimeClient(address)
    client.arbitrate()
    client.set_pipeline(config=config)
    names = Names(config.p4info)
    log: Log = []
    for kind, text in STEPS:
        code = _write(client, p4r.Update(type=kind, entity=names.entity(text)))
        state = [line for query in QUERIES for line in _read(client, names.entity(query))]
        log.append(((kind, text), code, sorted(state)))
    client.close()
    return log


def _write(client: P4RuntimeClient, update: p4r.Update) -> str:
    try:
        client.write_updates(update)
    except grpc.RpcError as error:
        (found,) = batch_errors(error)
        return str(rpc_code.Code.Name(found.canonical_code))
    return "OK"


def _read(client: P4RuntimeClient, query: p4r.Entity) -> list[str]:
    try:
        found = client.read(query)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.NOT_FOUND:
            return []  # the reference refuses to read a group that is not there
        return [f"{query.WhichOneof('entity')}: {error.code()} {error.details()}"]
    for entity in found:
        if entity.HasField("table_entry"):
            entity.table_entry.is_const = False  # of 1.4; the reference does not know it
            entity.table_entry.match.sort(key=lambda match: match.field_id)
        replication = entity.packet_replication_engine_entry
        if replication.HasField("multicast_group_entry"):
            replication.multicast_group_entry.replicas.sort(key=lambda replica: replica.egress_port)
    return [text_format.MessageToString(entity, as_one_line=True) for entity in found]


DEVIATIONS = {
    ("INSERT", exact("\\001\\000")): ("INVALID_ARGUMENT", "8.3: a value that does not fit is OUT_OF_RANGE"),
    ("INSERT", exact("\\005", call=action("send", "\\002\\000"))): ("INVALID_ARGUMENT", "the same"),
    ("INSERT", exact("\\010")): ("UNKNOWN", "9.1: a full table is RESOURCE_EXHAUSTED"),
    ("MODIFY", hits("\\011")): ("INVALID_ARGUMENT", "9.3.1: of an entry that is not there, NOT_FOUND"),
    ("MODIFY", lpm(call="")): ("INVALID_ARGUMENT", "9.1.2: the action may be left out"),
    ("INSERT", selected("action_profile_group_id: 9", "\\002")): ("INVALID_ARGUMENT", "9.1.2: NOT_FOUND"),
    ("INSERT", selected("action_profile_member_id: 9", "\\004")): ("INVALID_ARGUMENT", "9.1.2: NOT_FOUND"),
    ("DELETE", member(1)): ("UNKNOWN", "9.2.1: while it is used, FAILED_PRECONDITION"),
    ("DELETE", group(1, "")): ("UNKNOWN", "9.2.2: while it is used, FAILED_PRECONDITION"),
    ("INSERT", CONSTANT_INSERT): ("UNKNOWN", "9.1.4: PERMISSION_DENIED"),
    ("DELETE", CONSTANT_DELETE): ("NOT_FOUND", "9.1.4: PERMISSION_DENIED"),
    ("MODIFY", COUNTER_BEYOND): ("UNKNOWN", "9.3.2: OUT_OF_RANGE"),
    ("MODIFY", METER_BEYOND): ("UNKNOWN", "9.4.2: OUT_OF_RANGE"),
    ("INSERT", exact("")): ("OK", "8.3: an empty string is rejected"),
}
"""What the reference answers otherwise, and what the specification says."""
STEPS_OF_EQUAL_STATE = len(STEPS) - 3


@pytest.fixture(scope="module")
def reference_log(config: p4r.ForwardingPipelineConfig, tmp_path_factory: pytest.TempPathFactory) -> Log:
    with reference(tmp_path_factory.mktemp("reference")) as address:
        return run(address, config)


@pytest.mark.parametrize("make", [OracleSwitch, NativeSwitch], ids=["oracle", "native"])
def test_codes_and_contents_are_the_references(
    make: type[OracleSwitch] | type[NativeSwitch], config: p4r.ForwardingPipelineConfig, reference_log: Log
) -> None:
    with ours(make()) as address:
        log = run(address, config)
    differing = {}
    for number, ((step, code, state), (_, reference_code, reference_state)) in enumerate(
        zip(log, reference_log, strict=True)
    ):
        if code != reference_code:
            assert code != "OK" or step == ("MODIFY", lpm(call="")), step
            differing[step] = reference_code
        if number < STEPS_OF_EQUAL_STATE:
            # the reference lists a member as often as its weight in a group says
            assert set(state) == set(reference_state), step
    assert differing == {step: reference_code for step, (reference_code, _) in DEVIATIONS.items()}
