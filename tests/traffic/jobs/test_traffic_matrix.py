"""What each link carries for a job is the analytic traffic matrix, packet by packet."""

from collections import Counter

import pytest

from weft import Fabric, topologies
from weft.jobs.models import Transformer
from weft.jobs.parallelism import Parallelism
from weft.jobs.traffic_bytes import sent_bytes
from weft.jobs.training_job import training_job
from weft.jobs.training_plan import TrainingPlan
from weft.topologies import shortest_paths
from weft.traffic.header_sizes import IMMEDIATE, RETH, overhead_bytes
from weft.traffic.jobs import CollectiveCall, Group, Job, Kind, OperationsBuilder, RankPart

MTU = 1024
PIECE_BYTES = 16 * 1024
DATA_CLASS = 3
RANKS = 6
GROUPS = ((0, 1, 2, 3), (1, 5, 4))
SIZE_BYTES = 12 * 4 * PIECE_BYTES
MESSAGE_BYTES = 100_000


def ring(size_bytes, ranks, steps):
    """Yield messages of a collective on a ring: each step a rank's chunk, in pieces, to the next rank."""
    for rank, following in zip(ranks, ranks[1:] + ranks[:1], strict=True):
        yield (rank, following), [PIECE_BYTES] * (steps * size_bytes // len(ranks) // PIECE_BYTES)


def direct(size_bytes, ranks, _):
    """Yield messages of an all-to-all: a part from each rank to each other."""
    for rank in ranks:
        yield from (((rank, other), [size_bytes // len(ranks)]) for other in ranks if other != rank)


COLLECTIVES = (
    # Of n ranks an all-reduce takes 2(n - 1) steps, each of its halves n - 1 (Patarasu and Yuan 2009, section 3).
    ("allreduce", "ring", ring, 2),
    ("allgather", "ring", ring, 1),
    ("reducescatter", "ring", ring, 1),
    ("alltoall", "direct", direct, 1),
)


def analytic_matrix():
    """Return the messages from each rank to each rank."""
    found = {(rank, (rank + 1) % RANKS): [MESSAGE_BYTES] for rank in range(RANKS)}
    for ranks in GROUPS:
        for _, _, messages, rounds in COLLECTIVES:
            for pair, sizes in messages(SIZE_BYTES, ranks, rounds * (len(ranks) - 1)):
                found.setdefault(pair, []).extend(sizes)
    return found


def job():
    """Return a job whose groups call all collectives at once, beside a message from each rank to the next."""
    parts = []
    for rank in range(RANKS):
        builder = OperationsBuilder()
        own = [number for number, ranks in enumerate(GROUPS) if rank in ranks]
        for slot, _ in enumerate(own):
            for call, _ in enumerate(COLLECTIVES):
                builder.collective(slot, call)
        builder.send(0, MESSAGE_BYTES)
        builder.receive(1, MESSAGE_BYTES)
        parts.append(RankPart(builder.build(), ((rank + 1) % RANKS, (rank - 1) % RANKS), tuple(own)))
    calls = tuple(CollectiveCall(name, SIZE_BYTES, algorithm) for name, algorithm, _, _ in COLLECTIVES)
    return Job("matrix", tuple(parts), tuple(Group(str(ranks), ranks) for ranks in GROUPS), calls)


@pytest.mark.parametrize("hosts_per_leaf", [2, 6])
def test_bytes_per_link_equal_the_analytic_traffic_matrix(hosts_per_leaf):
    """Each packet of a message has its headers, the first one the address, the last one the immediate."""
    leaves = RANKS // hosts_per_leaf
    fabric = topologies.leaf_spine(planes=1, leaves=leaves, spines=int(leaves > 1), hosts_per_leaf=hosts_per_leaf)
    packets, sent_bytes = Counter[str](), Counter[str]()
    for (source, destination), sizes in analytic_matrix().items():
        (path,) = shortest_paths(fabric, f"h{source}", f"h{destination}", 0)
        for hop in path.hops:
            link = f"{hop.node}:{hop.port}"
            count = sum(-(-size // MTU) for size in sizes)
            packets[link] += count
            sent_bytes[link] += sum(sizes) + count * overhead_bytes(4, int_telemetry=True)
            sent_bytes[link] += len(sizes) * (RETH + IMMEDIATE)
    with Fabric(fabric, clock="virtual", mtu_bytes=MTU) as running:
        ran = running.run_job(job())
        found = transmitted(running)
    assert ran.retransmissions == 0
    assert {link: each["packets"] for link, each in found.items()} == packets
    assert {link: each["bytes"] for link, each in found.items()} == sent_bytes


def test_gradients_that_the_network_sums_cross_each_link_once():
    """Each way: a packet of 64 elements, and one of exponents for every 64 of them (docs/spec/aggregation.md)."""
    model = Transformer(layers=2, hidden=64, heads=2, feed_forward=128, vocabulary=512, sequence=64)
    job = training_job(TrainingPlan(model, Parallelism(data=4), algorithms={"data": "in-network"}))
    operations = job.parts[0].operations
    calls = [job.calls[operations.calls[slot][1]] for slot in operations.target[operations.of_kind(Kind.COLLECTIVE)]]
    data_packets = [-(-call.size_bytes // 256) for call in calls]
    assert sent_bytes(job, 0) == {"data": sum(call.size_bytes for call in calls)}
    fabric = topologies.leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=2)
    with Fabric(fabric, clock="virtual") as running:
        running.run_job(job)
        found = transmitted(running)
    assert len(found) == 2 * len(fabric.links)
    assert {each["packets"] for each in found.values()} == {sum(each + -(-each // 64) for each in data_packets)}


def transmitted(running):
    """Return what each port sent of the data's class, by packets and bytes; acknowledgements have another class."""
    ports = {
        f"{name}:{number}": port["transmit"]
        for name, switch in running.lab.switch_stats()["switches"].items()
        for number, port in switch["ports"].items()
    }
    ports |= {
        f"{host['name']}:{plane['plane']}": plane["transmit"]
        for host in running.hosts.stats()
        for plane in host["planes"]
    }
    found = {name: port["classes"][DATA_CLASS]["transmitted"] for name, port in ports.items()}
    return {name: each for name, each in found.items() if each["packets"]}
