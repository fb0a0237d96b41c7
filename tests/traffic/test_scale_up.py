"""Links between the ranks of a host: exact times, order at the receiver, refusals."""

import numpy as np
import pytest

from tests.refusals import refused
from weft.engine import Engine, Nic, _core
from weft.traffic.aggregation_format import Operation
from weft.traffic.collectives import COLLECTIVE_KINDS
from weft.traffic.data_types import DataType
from weft.traffic.native_schedule import RemoteBuffer, build_native_schedule
from weft.traffic.scale_up import ScaleUpLinks, ScaleUpPort
from weft.traffic.schedule_nodes import DATA, SCALE_UP, Channel
from weft.traffic.schedules import CollectiveSpec

RATE_BPS, LATENCY_PS = 3_200_000_000_000, 500_000
PS_PER_BYTE = 8 * 10**12 / RATE_BPS


class HostOfRanks:
    """Ranks of one host, each with memory of its own, joined two by two."""

    def __init__(self, ranks=4, size_bytes=1 << 20, **change):
        self.engine = Engine()
        figures = {"rate_bps": RATE_BPS, "latency_ps": LATENCY_PS} | change
        links = ScaleUpLinks(_core.ScaleUpDomain(self.engine, port_count=ranks, **figures), tuple(range(ranks)))
        self.nics = [Nic(self.engine, f"h{rank}") for rank in range(ranks)]
        self.executors = [_core.ScheduleExecutor(self.engine) for _ in range(ranks)]
        self.ports = [ScaleUpPort(links, rank, self.nics[rank], self.executors[rank]) for rank in range(ranks)]
        self.data = [np.full(size_bytes, rank, np.uint8) for rank in range(ranks)]
        self.memory = [
            nic.register_memory(data, remote_read=True) for nic, data in zip(self.nics, self.data, strict=True)
        ]
        for rank in range(ranks):
            for peer in range(ranks):
                if peer != rank:
                    self.ports[rank].connect(Channel(0, peer, SCALE_UP), 0x100 + peer, 0x100 + rank)

    def schedule(self, rank):
        made = _core.Schedule()
        made.add_buffer(self.data[rank])
        return made

    def write(self, schedule, rank, peer, length, *, offset=0, immediate=None, after=()):
        return schedule.add_write(
            self.ports[rank].channels()[Channel(0, peer, SCALE_UP)],
            (0, offset, length),
            remote_address=self.memory[peer].virtual_address + offset,
            rkey=self.memory[peer].rkey,
            immediate=immediate,
            after=list(after),
        )

    def read(self, schedule, rank, peer, length, *, offset=0, into=None, after=()):
        """Add a READ of the peer's bytes from `offset` on, to the front of the rank's data or of buffer `into`."""
        return schedule.add_read(
            self.ports[rank].channels()[Channel(0, peer, SCALE_UP)],
            (0 if into is None else into, 0, length),
            remote_address=self.memory[peer].virtual_address + offset,
            rkey=self.memory[peer].rkey,
            after=list(after),
        )

    def by_switch(self, collective, rank, size_bytes, **change):
        """Return a rank's part in a collective of int8 by the host's switch, over the front of all ranks' data."""
        options = {"piece_bytes": size_bytes, "ranks_per_host": len(self.data), "host_reductions": True} | change
        spec = CollectiveSpec(len(self.data), size_bytes, DataType.INT8, Operation.SUM, (1,), **options)
        return build_native_schedule(
            COLLECTIVE_KINDS[collective].schedule("nvls", spec, rank),
            {DATA: self.data[rank]},
            self.ports[rank].channels(),
            {},
            {peer: {DATA: RemoteBuffer(each.virtual_address, each.rkey)} for peer, each in enumerate(self.memory)},
        )

    def run(self, schedules):
        runs = {rank: self.executors[rank].start(schedule) for rank, schedule in schedules.items()}
        self.engine.run()
        return {rank: self.executors[rank].status(run) for rank, run in runs.items()}


@pytest.mark.parametrize("size_bytes", [0, 1, 1000, 1 << 20])
def test_a_message_takes_its_bytes_and_the_latency(size_bytes):
    """n/rate + latency, at both ends, to the picosecond."""
    host = HostOfRanks()
    sender, receiver = host.schedule(0), host.schedule(1)
    host.write(sender, 0, 1, size_bytes, immediate=7)
    receiver.add_wait_receive(host.ports[1].channels()[Channel(0, 0, SCALE_UP)], 7)
    ended = host.run({0: sender, 1: receiver})
    # Half a picosecond is rounded up.
    expected_ps = int(size_bytes * PS_PER_BYTE + 0.5) + LATENCY_PS
    assert {status["finished_ps"] for status in ended.values()} == {expected_ps}
    assert np.all(host.data[1][:size_bytes] == 0)
    assert np.all(host.data[1][size_bytes:] == 1)


def transfer_ps(size_bytes):
    """Return the time of bytes at the ports' rate, half a picosecond rounded up."""
    return int(size_bytes * PS_PER_BYTE + 0.5)


@pytest.mark.parametrize("size_bytes", [0, 1, 1000, 1 << 20])
def test_a_read_takes_a_write_and_the_latency_of_its_request(size_bytes):
    host = HostOfRanks()
    host.data[1][:] = np.arange(len(host.data[1])) % 251
    there = host.data[1].copy()
    reader = host.schedule(0)
    host.read(reader, 0, 1, size_bytes)
    status = host.run({0: reader})[0]
    assert (status["state"], status["finished_ps"]) == ("finished", transfer_ps(size_bytes) + 2 * LATENCY_PS)
    assert np.array_equal(host.data[0][:size_bytes], there[:size_bytes])
    assert np.all(host.data[0][size_bytes:] == 0)
    assert np.array_equal(host.data[1], there)
    mine, theirs = (host.ports[rank].stats() for rank in (0, 1))
    # The request has no bytes; the response is a message of the peer's.
    assert (mine["sent_messages"], mine["sent_bytes"], mine["received_bytes"]) == (1, 0, size_bytes)
    assert (theirs["sent_messages"], theirs["sent_bytes"], theirs["received_bytes"]) == (1, size_bytes, 0)
    assert mine["received_messages"] == theirs["received_messages"] == 1


def test_reads_of_one_rank_share_its_port():
    host = HostOfRanks()
    schedules = {rank: host.schedule(rank) for rank in (1, 2, 3)}
    for rank, schedule in schedules.items():
        host.read(schedule, rank, 0, 100_000)
    finished = sorted(status["finished_ps"] for status in host.run(schedules).values())
    assert finished == [n * 100_000 * PS_PER_BYTE + 2 * LATENCY_PS for n in (1, 2, 3)]


def test_a_request_waits_behind_what_its_rank_sends():
    """A port is a queue: the request leaves after the message before it, and reads what that wrote."""
    host = HostOfRanks()
    host.data[0][:] = 9
    schedule = host.schedule(0)
    read = schedule.add_buffer(found := np.zeros(1000, np.uint8))
    host.write(schedule, 0, 1, 100_000)
    host.read(schedule, 0, 1, 1000, into=read)
    finished_ps = host.run({0: schedule})[0]["finished_ps"]
    assert finished_ps == 101_000 * PS_PER_BYTE + 2 * LATENCY_PS
    assert np.all(found == 9)


def test_a_read_sees_the_memory_as_it_was_when_the_request_came():
    host = HostOfRanks()
    reader, writer = host.schedule(0), host.schedule(2)
    host.read(reader, 0, 1, 100_000)
    # It is placed while the response is on its way.
    host.write(writer, 2, 1, 100_000)
    host.run({0: reader, 2: writer})
    assert np.all(host.data[0][:100_000] == 1)
    assert np.all(host.data[1][:100_000] == 2)


@pytest.mark.parametrize("add", ["add_zeros", "add_lengths"])
def test_what_is_read_may_be_discarded(add):
    host = HostOfRanks()
    schedule = _core.Schedule()
    host.read(schedule, 0, 1, 5000, into=getattr(schedule, add)(5000))
    assert host.run({0: schedule})[0]["state"] == "finished"
    assert host.ports[0].stats()["received_bytes"] == 5000


def test_a_sink_is_read_as_zeros():
    host = HostOfRanks()
    host.data[0][:] = 7
    host.memory[1] = host.nics[1].register_sink(5000)
    schedule = host.schedule(0)
    host.read(schedule, 0, 1, 5000)
    assert host.run({0: schedule})[0]["state"] == "finished"
    assert np.all(host.data[0][:5000] == 0)
    assert np.all(host.data[0][5000:] == 7)


def test_memory_that_may_not_be_read_is_refused():
    """At the time of the request: nothing comes back."""
    host = HostOfRanks()
    host.memory[1] = host.nics[1].register_memory(host.data[1])
    schedule = host.schedule(0)
    host.read(schedule, 0, 1, 5000)
    status = host.run({0: schedule})[0]
    assert (status["state"], status["finished_ps"]) == ("failed", LATENCY_PS)
    assert "remote_access_error" in status["error"]
    assert np.all(host.data[0] == 0)
    assert host.ports[1].stats() == {name: int(name == "refused_messages") for name in host.ports[1].stats()}


@pytest.mark.parametrize(("closes", "at_ps"), [(0, 0.5), (1, 0.5), (0, 1.5), (1, 1.5)])
def test_a_read_on_a_channel_that_is_closed_touches_nothing(closes, at_ps):
    """A response on the way comes in all the same if it was the peer that closed."""
    host = HostOfRanks()
    schedule = host.schedule(0)
    host.read(schedule, 0, 1, 5000)
    run = host.executors[0].start(schedule)
    host.engine.run_until(int(at_ps * LATENCY_PS))
    host.ports[closes].disconnect(Channel(0, 1 - closes, SCALE_UP))
    host.engine.run()
    comes = (closes, at_ps) == (1, 1.5)
    assert np.all(host.data[0][:5000] == (1 if comes else 0))
    assert host.executors[0].status(run)["state"] == ("finished" if comes else "running")
    assert host.ports[0].stats()["abandoned_messages"] == (0 if comes else 1)


def test_messages_of_a_port_follow_each_other():
    host = HostOfRanks()
    sender = host.schedule(0)
    for peer in (1, 2, 3):
        host.write(sender, 0, peer, 100_000)
    assert host.run({0: sender})[0]["finished_ps"] == 300_000 * PS_PER_BYTE + LATENCY_PS


def test_a_receivers_port_takes_one_byte_after_another():
    """Three to one: the receiver's link is the bottleneck, and it is never idle."""
    host = HostOfRanks()
    schedules = {rank: host.schedule(rank) for rank in (1, 2, 3)}
    for rank, schedule in schedules.items():
        host.write(schedule, rank, 0, 100_000)
    ended = host.run(schedules)
    finished = sorted(status["finished_ps"] for status in ended.values())
    assert finished == [n * 100_000 * PS_PER_BYTE + LATENCY_PS for n in (1, 2, 3)]


def test_pairs_do_not_block_each_other():
    host = HostOfRanks()
    schedules = {0: host.schedule(0), 2: host.schedule(2)}
    host.write(schedules[0], 0, 1, 100_000)
    host.write(schedules[2], 2, 3, 100_000)
    ended = host.run(schedules)
    assert {status["finished_ps"] for status in ended.values()} == {100_000 * PS_PER_BYTE + LATENCY_PS}


def test_a_short_message_overtakes_a_backlog_of_another_sender():
    host = HostOfRanks()
    backlog, short = host.schedule(0), host.schedule(1)
    host.write(backlog, 0, 2, 1_000_000)
    host.write(backlog, 0, 3, 1000)
    host.write(short, 1, 3, 1000)
    ended = host.run({0: backlog, 1: short})
    assert ended[1]["finished_ps"] == 1000 * PS_PER_BYTE + LATENCY_PS
    assert ended[0]["finished_ps"] == 1_001_000 * PS_PER_BYTE + LATENCY_PS


def test_bytes_are_counted_at_both_ends():
    host = HostOfRanks()
    sender = host.schedule(0)
    host.write(sender, 0, 1, 5000)
    host.run({0: sender})
    assert (host.ports[0].stats()["sent_bytes"], host.ports[1].stats()["received_bytes"]) == (5000, 5000)
    host.ports[0].reset_stats()
    assert host.ports[0].stats()["sent_messages"] == 0


@pytest.mark.parametrize(("protocol", "size_bytes", "wire_bytes"), [("ll", 5000, 10_000), ("ll128", 5000, 6144)])
def test_links_carry_the_flags_of_lines(protocol, size_bytes, wire_bytes):
    host = HostOfRanks()
    for rank in (0, 1):
        host.ports[rank].connect(Channel(0, 1 - rank, SCALE_UP, protocol=protocol), 0x200, 0x200)
    sender = host.schedule(0)
    sender.add_write(
        host.ports[0].channels()[Channel(0, 1, SCALE_UP, protocol=protocol)],
        (0, 0, size_bytes),
        remote_address=host.memory[1].virtual_address,
        rkey=host.memory[1].rkey,
    )
    assert host.run({0: sender})[0]["finished_ps"] == wire_bytes * PS_PER_BYTE + LATENCY_PS
    assert (host.ports[0].stats()["sent_bytes"], host.ports[1].stats()["received_bytes"]) == (wire_bytes, wire_bytes)
    assert np.all(host.data[1][:size_bytes] == 0)
    assert np.all(host.data[1][size_bytes:] == 1)


def test_a_step_goes_on_after_its_latency():
    """Whether it has waited for the message or not; the sender's step has ended before."""
    for wait_ps in (0, 10**9):
        host = HostOfRanks()
        for rank in (0, 1):
            host.ports[rank].connect(Channel(0, 1 - rank, SCALE_UP), 0x200, 0x200, 3_000_000)
        sender, receiver = host.schedule(0), host.schedule(1)
        host.write(sender, 0, 1, 1000, immediate=7)
        later = [receiver.add_delay(wait_ps)] if wait_ps else []
        receiver.add_wait_receive(host.ports[1].channels()[Channel(0, 0, SCALE_UP)], 7, after=later)
        ended = host.run({0: sender, 1: receiver})
        arrived_ps = 1000 * PS_PER_BYTE + LATENCY_PS
        assert ended[0]["finished_ps"] == arrived_ps
        assert ended[1]["finished_ps"] == max(wait_ps, arrived_ps + 3_000_000)


def test_a_message_is_not_seen_by_a_channel_that_takes_its_place():
    host = HostOfRanks()
    for rank in (0, 1):
        host.ports[rank].connect(Channel(0, 1 - rank, SCALE_UP), 0x200, 0x200, 3_000_000)
    sender = host.schedule(0)
    host.write(sender, 0, 1, 1000, immediate=7)
    host.executors[0].start(sender)
    host.engine.run_for(2_000_000)  # it has arrived, and is not seen
    for rank in (0, 1):
        host.ports[rank].connect(Channel(0, 1 - rank, SCALE_UP), 0x300, 0x300, 3_000_000)
    receiver = host.schedule(1)
    receiver.add_wait_receive(host.ports[1].channels()[Channel(0, 0, SCALE_UP)], 7)
    assert host.run({1: receiver})[1]["state"] == "running"


def test_a_negative_latency_is_refused():
    host = HostOfRanks()
    with pytest.raises(ValueError, match=r"step latency of -1 ps \(valid: 0 or more\)"):
        host.ports[0].connect(Channel(0, 1, SCALE_UP), 0x200, 0x200, -1)


def test_memory_that_is_not_registered_is_refused():
    host = HostOfRanks()
    sender = host.schedule(0)
    host.write(sender, 0, 1, 5000)
    host.memory[1].deregister()
    status = host.run({0: sender})[0]
    assert status["state"] == "failed"
    assert "remote_access_error" in status["error"]
    assert host.ports[1].stats()["refused_messages"] == 1


def test_what_is_under_way_on_a_closed_channel_touches_nothing():
    host = HostOfRanks()
    sender = host.schedule(0)
    host.write(sender, 0, 1, 5000)
    run = host.executors[0].start(sender)
    host.engine.run_until(LATENCY_PS // 2)
    host.ports[0].disconnect(Channel(0, 1, SCALE_UP))
    host.engine.run()
    assert np.all(host.data[1] == 1)
    assert host.executors[0].status(run)["state"] == "running"
    assert host.ports[0].stats()["abandoned_messages"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [({"rate_bps": 0}, "rate of 0"), ({"latency_ps": -1}, "latency of -1 ps")],
)
def test_senseless_links_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        HostOfRanks(**change)


def test_other_hosts_ranks_and_other_engines_are_refused():
    host = HostOfRanks()
    with refused(ValueError, valid="0, 1, 2, 3", problem="rank 9 is of another host"):
        host.ports[0].connect(Channel(0, 9, SCALE_UP), 1, 2)
    domain = _core.ScaleUpDomain(Engine(), rate_bps=1, latency_ps=0, port_count=2)
    with pytest.raises(ValueError, match="another engine"):
        domain.attach(0, host.nics[0])
    with pytest.raises(ValueError, match="port 2"):
        domain.stats(2)


def relayed(host):
    """Have what rank 0 sends to rank 1 be sent on from there; return the relay, without a queue pair yet."""
    host.ports[1].disconnect(Channel(0, 0, SCALE_UP))
    return host.ports[1].relay(0, 0x101, 0x100, 0)


@pytest.mark.parametrize(
    ("request_of", "error"), [("read", "remote_invalid_request"), ("write", "flushed")], ids=["read", "write"]
)
def test_a_relay_carries_no_reads_and_needs_a_queue_pair(request_of, error):
    host = HostOfRanks()
    relay = relayed(host)
    schedule = host.schedule(0)
    getattr(host, request_of)(schedule, 0, 1, 1000)
    status = host.run({0: schedule})[0]
    assert status["state"] == "failed"
    assert error in status["error"]
    assert np.all(host.data[1] == 1)
    assert host.ports[1].stats()["relayed_messages"] == 0
    relay.close()


def test_what_comes_to_a_closed_relay_is_abandoned():
    host = HostOfRanks()
    relayed(host).close()
    schedule = host.schedule(0)
    host.write(schedule, 0, 1, 1000)
    assert host.run({0: schedule})[0]["state"] == "running"
    assert host.ports[0].stats()["abandoned_messages"] == 1
    assert np.all(host.data[1] == 1)


def test_a_reduction_comes_with_its_last_term():
    """Terms go up as they are posted; the switch adds the last one's bits to the others' as they pass."""
    host, size_bytes, late_ps = HostOfRanks(), 100_000, 7_000_000
    schedules = {rank: host.by_switch("allreduce", rank, size_bytes) for rank in range(4)}
    first = {rank: host.executors[rank].start(schedules[rank]) for rank in (0, 2, 3)}
    host.engine.run_for(late_ps)
    assert {host.executors[rank].status(run)["state"] for rank, run in first.items()} == {"running"}
    first[1] = host.executors[1].start(schedules[1])
    host.engine.run()
    ended = [host.executors[rank].status(run) for rank, run in first.items()]
    assert {each["finished_ps"] for each in ended} == {late_ps + size_bytes * PS_PER_BYTE + LATENCY_PS}
    assert all(np.all(data[:size_bytes] == 0 + 1 + 2 + 3) for data in host.data)
    assert [data[size_bytes] for data in host.data] == [0, 1, 2, 3]
    for port in host.ports:
        stats = port.stats()
        assert (stats["sent_bytes"], stats["received_bytes"]) == (size_bytes, size_bytes)


def test_a_multicast_leaves_its_sender_once():
    host, size_bytes = HostOfRanks(), 100_000
    ended = host.run({rank: host.by_switch("allgather", rank, size_bytes) for rank in range(4)})
    # Four chunks come in one after the other at each port, the own one among them.
    assert {each["finished_ps"] for each in ended.values()} == {size_bytes * PS_PER_BYTE + LATENCY_PS}
    assert all(np.array_equal(data[:size_bytes], np.repeat(np.arange(4), size_bytes // 4)) for data in host.data)
    for port in host.ports:
        stats = port.stats()
        assert (stats["sent_bytes"], stats["received_bytes"]) == (size_bytes // 4, size_bytes)


def test_terms_of_a_channel_that_closes_are_abandoned_with_all_that_wait_for_them():
    """Nobody reads the data of those that are gone."""
    host = HostOfRanks()
    runs = [host.executors[rank].start(host.by_switch("allreduce", rank, 1000)) for rank in (0, 1, 2)]
    host.engine.run_for(LATENCY_PS)
    host.ports[2].disconnect(Channel(0, 0, SCALE_UP))
    # Rank 2 has no channel to rank 0 any more, so that its own term cannot be completed either.
    assert sum(port.stats()["abandoned_messages"] for port in host.ports) > 0
    late = host.executors[3].start(host.by_switch("allreduce", 3, 1000))
    host.engine.run()
    states = [host.executors[rank].status(run)["state"] for rank, run in enumerate([*runs, late])]
    assert "finished" not in states
    assert np.all(host.data[0][:1000] == 0)


def test_terms_that_do_not_go_together_are_refused():
    host = HostOfRanks()
    schedules = {rank: host.by_switch("allreduce", rank, 1000 + 10 * (rank == 3)) for rank in range(4)}
    ended = host.run(schedules)
    assert ended[3]["state"] == "failed"
    assert "does not go with that of port" in ended[3]["error"]
    assert all(np.all(host.data[rank][:1000] == rank) for rank in range(4))


def test_there_are_no_more_terms_than_ports():
    host = HostOfRanks(2)
    schedule = _core.LaneSchedule("int8", "sum")
    schedule.add_stage()
    schedule.add_block(1)
    schedule.add_loop(1, schedule.add_grid(1, [False]), (0, 0, 0))
    table = schedule.add_table(_core.ElementTable.of([(0, 100)]))
    schedule.send((table, 0, 0, 0, False), (0, 0, 0), 0, False, None, 0, 0, 0, terms=3)
    there = host.memory[1]
    channel = host.ports[0].channels()[Channel(0, 1, SCALE_UP)]
    bound = _core.BoundLanes(
        schedule,
        payload="data",
        data=host.data[0],
        scratch=None,
        channels=[(channel, there.virtual_address, there.rkey, 0, 0)],
        aggregators=[],
    )
    status = host.run({0: bound})[0]
    assert status["state"] == "failed"
    assert "a reduction of 3 terms (valid: 1 to 2)" in status["error"]
