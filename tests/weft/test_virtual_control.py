"""P4Runtime within the process: when requests take effect, what is refused, what switches send, in virtual time."""

import asyncio
from pathlib import Path

import grpc
import pytest
from finsy.proto import U128, p4r
from google.protobuf import text_format

from tests.refusals import refused
from weft.clocks.virtual.channel import InProcessChannel
from weft.clocks.virtual.event_pump import EventPump
from weft.clocks.virtual.loop import VirtualTimeLoop
from weft.clocks.virtual.management import ManagementNetwork
from weft.compiler import compile_artifacts
from weft.controller.errors import NotPrimaryError, RequestRefusedError
from weft.controller.pipeline import Pipeline
from weft.controller.reconcile import EncodedEntity
from weft.controller.session import SwitchSession
from weft.controller.stub import P4RuntimeStub
from weft.engine import Engine
from weft.switch.daemon.config import PortConfig, SwitchConfig
from weft.switch.daemon.wired_switches import WiredSwitches

LATENCY_PS = 100_001
THERE_PS, BACK_PS = 50_000, 50_001
SOURCE = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> destination; bit<48> source; bit<16> kind; }
@controller_header("packet_out") header packet_out_t { bit<16> port; }
struct headers { packet_out_t packet_out; ethernet_t ethernet; }
struct learnt_t { bit<48> source; bit<9> port; }
struct metadata { }
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { transition select(s.ingress_port) { 510: out_packet; default: ethernet; } }
    state out_packet { p.extract(h.packet_out); transition ethernet; }
    state ethernet { p.extract(h.ethernet); transition accept; }
}
control C(inout headers h, inout metadata m) { apply { } }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    action forward(bit<9> port) { s.egress_spec = port; }
    action drop() { mark_to_drop(s); }
    table hosts {
        key = { h.ethernet.destination: exact; }
        actions = { forward; drop; }
        default_action = drop();
        support_timeout = true;
    }
    apply {
        digest<learnt_t>(1, { h.ethernet.source, s.ingress_port });
        hosts.apply();
    }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h.ethernet); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


class Bench:
    """A switch without links, its controller's channel, and the arrival times of its messages."""

    def __init__(self, engine, loop, pipeline):
        self.engine, self.loop, self.pipeline = engine, loop, pipeline
        config = SwitchConfig(device_id=1, name="s", ports=(PortConfig(port=1, host_uplink=True),))
        self.wired = WiredSwitches(engine, [config]).switches[1]
        device = self.wired.device(clock_ns=lambda: engine.now_ps // 1000)
        self.pump = EventPump(device, self.wired.switch, loop)
        channel = InProcessChannel(
            {1: device}, loop, LATENCY_PS, lambda _number: self.pump.pump(), ManagementNetwork(loop, ())
        )
        self.stub = P4RuntimeStub(channel)
        info = pipeline.p4info
        self.table = next(each.preamble.id for each in info.tables)
        self.digest = next(each.preamble.id for each in info.digests)
        self.forward = next(each.preamble.id for each in info.actions if each.preamble.alias == "forward")

    def session(self, **options):
        return SwitchSession("s", 1, self.stub, self.pipeline, **options)

    def entry(self, text=""):
        return text_format.Parse(
            f"""table_entry {{ table_id: {self.table}
                match {{ field_id: 1 exact {{ value: "\\007" }} }}
                action {{ action {{ action_id: {self.forward} params {{ param_id: 1 value: "\\001" }} }} }}
                {text} }}""",
            p4r.Entity(),
        )

    async def write(self, entity):
        """Write as the controller whose election id these tests' own streams have."""
        request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1 << 20))
        request.updates.add(type=p4r.Update.INSERT, entity=entity)
        await self.stub.Write(request.SerializeToString())

    def run(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def inject(self, time_ps):
        frame = bytes.fromhex("000000000007000000000009") + bytes(52)
        self.engine.inject(self.wired.switch.native, 1, frame, time_ps)


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    folder: Path = tmp_path_factory.mktemp("program")
    (folder / "learn.p4").write_text(SOURCE)
    compiled = compile_artifacts(folder / "learn.p4")
    (folder / "learn.json").write_text(compiled.json_text)
    (folder / "learn.txtpb").write_text(compiled.p4info_text)
    return Pipeline.load(folder / "learn.txtpb", folder / "learn.json")


@pytest.fixture
def bench(pipeline):
    engine = Engine(seed=1)
    loop = VirtualTimeLoop(engine)
    made = Bench(engine, loop, pipeline)
    yield made
    made.pump.close()
    loop.close()


@pytest.fixture
def primary(bench):
    session = bench.session()
    bench.run(session.become_primary())
    bench.run(session.push_pipeline())
    yield session
    bench.run(session.close())


def insert(entity):
    return EncodedEntity.of(entity).update(p4r.Update.INSERT)


def test_a_call_takes_the_latency(bench):
    bench.run(bench.session().negotiate_version())
    assert bench.engine.now_ps == LATENCY_PS


def test_a_bid_takes_the_latency(bench):
    session = bench.session()
    bench.run(session.become_primary())
    assert bench.engine.now_ps == LATENCY_PS
    bench.run(session.close())


def test_a_write_takes_effect_half_way(bench, primary):
    begun_ps = bench.engine.now_ps
    changes = []

    async def write_and_watch():
        writing = asyncio.ensure_future(primary.write([insert(bench.entry())]))
        for wait_ps in (THERE_PS - 1, 2):
            await bench.loop.sleep_ps(wait_ps)
            changes.append(len(list(bench.wired.switch.table_entries("I.hosts"))))
        assert not writing.done()
        await writing

    bench.run(write_and_watch())
    assert changes == [0, 1]
    assert bench.engine.now_ps == begun_ps + LATENCY_PS


def test_what_is_refused_is_reported_as_over_grpc(bench, primary):
    with refused(RequestRefusedError, problem="refused: ALREADY_EXISTS"):
        bench.run(primary.write([insert(bench.entry())] * 2))
    assert len(bench.run(primary.read_raw([bench.entry()]))) == 1


def test_a_call_to_an_unknown_device_is_refused(bench):
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        bench.run(bench.stub.Write(p4r.WriteRequest(device_id=7).SerializeToString()))
    assert refusal.value.code() is grpc.StatusCode.NOT_FOUND
    assert bench.engine.now_ps == LATENCY_PS


def test_a_second_controller_stays_backup_until_the_first_leaves(bench, primary):
    second = bench.session()
    with refused(NotPrimaryError, problem="another controller"):
        bench.run(second.become_primary())
    bench.run(second.become_primary(preempt=True))
    assert not primary.is_primary
    bench.run(second.close())
    # The switch notices, notifies the first controller, which bids and is answered.
    bench.run(bench.loop.sleep_ps(2 * LATENCY_PS + 1))
    assert primary.is_primary


def test_a_stream_that_breaks_the_rules_is_ended_with_the_reason(bench):
    async def break_them():
        stream = bench.stub.StreamChannel()
        bid = p4r.MasterArbitrationUpdate(device_id=7, election_id=U128.encode(1))
        await stream.write(p4r.StreamMessageRequest(arbitration=bid))
        assert await stream.read() is grpc.aio.EOF
        assert await stream.code() is grpc.StatusCode.NOT_FOUND
        assert "unknown device_id 7" in await stream.details()
        with pytest.raises(asyncio.InvalidStateError):
            await stream.write(p4r.StreamMessageRequest(arbitration=bid))

    bench.run(break_them())
    assert bench.engine.now_ps == LATENCY_PS


async def digests(bench, config, count):
    """Return `count` digest lists with their arrival times, from a stream that has become primary."""
    stream = bench.stub.StreamChannel()
    bid = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1 << 20))
    await stream.write(p4r.StreamMessageRequest(arbitration=bid))
    await stream.read()
    entity = p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=bench.digest, config=config))
    await bench.write(entity)
    start_ps = bench.engine.now_ps
    for number in range(count):
        bench.inject(start_ps + 1000 * (number + 1))
    message = await stream.read()
    came_ps = bench.engine.now_ps - start_ps
    stream.cancel()
    return came_ps, message.digest


def test_a_digest_reaches_the_controller_half_a_latency_after_its_packet(bench, primary):
    config = p4r.DigestEntry.Config(max_list_size=1)
    came_ps, digest = bench.run(digests(bench, config, 1))
    assert came_ps == 1000 + BACK_PS
    assert len(digest.data) == 1


def test_a_digest_list_waits_for_its_timeout_in_virtual_time(bench, primary):
    config = p4r.DigestEntry.Config(max_list_size=10, max_timeout_ns=1_000_000)
    came_ps, digest = bench.run(digests(bench, config, 1))
    assert came_ps - BACK_PS - 1000 == pytest.approx(10**9, abs=1000)  # whole nanoseconds
    assert len(digest.data) == 1


def test_an_idle_entry_is_reported_when_its_timeout_is_over(bench, primary):
    async def wait_for_it():
        stream = bench.stub.StreamChannel()
        bid = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1 << 20))
        await stream.write(p4r.StreamMessageRequest(arbitration=bid))
        await stream.read()
        await bench.write(bench.entry("idle_timeout_ns: 2000000"))
        written_ps = bench.engine.now_ps - BACK_PS
        message = await stream.read()
        assert message.idle_timeout_notification.table_entry[0].table_id == bench.table
        stream.cancel()
        return bench.engine.now_ps - written_ps

    assert bench.run(wait_for_it()) - BACK_PS == pytest.approx(2 * 10**9, abs=1000)
