"""Tiny reductions in the network while links of every plane fail and come back at random.

    python -m fuzz.plane_flaps [--collectives N] [--minutes N] [--seed N] [--episodes N,…]

An episode is a small fabric of several planes under the virtual clock and some collectives on it, one after the other;
its number and the seed say everything about it. Around each collective, links of all planes fail and come back: while
hosts join, while trees are programmed, while hosts reduce. Every collective must end with exact results. Only where at
some moment no plane had a tree, as links were down, it may end with a CheckFailedError instead.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from weft import Fabric, topologies
from weft.errors import CheckFailedError
from weft.results.link_events import LinkEventResult
from weft.run.collectives import CollectiveRequest
from weft.scenario import ControlSection
from weft.topologies import FabricSpec
from weft.traffic.training import Layer, TrainingStep

US = 10**6
COLLECTIVES_PER_EPISODE = 20
_KINDS = (*["allreduce"] * 4, "reduce", "broadcast", "reducescatter", "allgather")
_SIZES = (1, 64, 300, 2000, 8000)
_GAPS_US = (0, 10, 100)
_NO_PLANE = "no plane in use has an aggregation tree: "
_TIMEOUT_S = 1.0
"""Of virtual time, a thousand times what a collective takes with all that happens to it."""


@dataclass
class Counts:
    """How collectives ended: with exact results, without a plane, or wrongly (in words, each with its episode)."""

    exact: int = 0
    without_plane: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def collectives(self) -> int:
        """How many there were."""
        return self.exact + self.without_plane + len(self.wrong)

    def add(self, other: Counts) -> None:
        """Count another episode's, too."""
        self.exact += other.exact
        self.without_plane += other.without_plane
        self.wrong += other.wrong


def _topology(draw: random.Random) -> FabricSpec:
    return topologies.leaf_spine(
        planes=draw.choice([2, 2, 2, 3]),
        leaves=draw.choice([2, 2, 3]),
        spines=draw.choice([1, 1, 2]),
        hosts_per_leaf=draw.choice([1, 1, 2]),
        host_rate_bps=100 * 10**9,
        delay_ps=US,
    )


def _schedule_flaps(fabric: Fabric, draw: random.Random) -> None:
    """Have some links fail and come back around the next collective; all are up at last."""
    while_ps = draw.choice([20, 60, 150, 400]) * US
    for _ in range(draw.choice([0, 1, 2, 2, 3, 5])):
        link = draw.choice(fabric.topology.links)
        down_ps = draw.randrange(while_ps)
        fabric.schedule_link(link.a.node, link.b.node, "down", down_ps)
        fabric.schedule_link(link.a.node, link.b.node, "up", down_ps + draw.randrange(1, while_ps))


def _inputs(draw: random.Random, kind: str, ranks: int) -> list[NDArray[np.generic]]:
    size = draw.choice(_SIZES)
    if kind == "reducescatter":
        size = -(-size // ranks) * ranks
    numbers = np.random.default_rng(draw.getrandbits(32))
    if draw.random() < 0.3:
        return [numbers.standard_normal(size).astype(np.float32) for _ in range(ranks)]
    return [numbers.integers(-(2**31), 2**31, size, np.int32) for _ in range(ranks)]


def has_tree(fabric: FabricSpec, plane: int, down: Iterable[str]) -> bool:
    """Return whether a leaf/spine plane has a tree of all hosts without the links of these names."""
    names = set(down)
    up = [link for link in fabric.links if fabric.link_name(link) not in names]
    in_plane = {switch.name for switch in fabric.switches_of_plane(plane)}
    joined = {frozenset((link.a.node, link.b.node)) for link in up if link.b.node in in_plane}
    nics = [(host.name, nic.switch) for host in fabric.hosts for nic in host.nics if nic.plane == plane]
    leaves = {leaf for _, leaf in nics}
    if any(frozenset(each) not in joined for each in nics):
        return False
    return any(all(frozenset((leaf, root)) in joined for leaf in leaves) for root in in_plane - leaves)


def _had_no_plane(fabric: Fabric, since_ps: int) -> bool:
    """Return whether at some moment since then no plane had a tree."""
    topology = fabric.topology
    happened = [each for each in fabric.lab.link_events.results if each.happened_ps is not None]
    return any(
        not any(has_tree(topology, plane, down) for plane in range(topology.planes))
        for down in _down_since(happened, since_ps)
    )


def _down_since(happened: Sequence[LinkEventResult], since_ps: int) -> Iterator[set[str]]:
    """Yield the links that were down, at each change since then."""
    down: set[str] = set()
    for event in sorted(happened, key=lambda each: each.happened_ps or 0):
        if (event.happened_ps or 0) > since_ps:
            yield set(down)
        down ^= {event.link} if (event.state == "down") != (event.link in down) else set()
    yield down


def _collective(fabric: Fabric, draw: random.Random, since_ps: int) -> bool:
    """Run one; returns whether it had a plane. Raises what must not be."""
    try:
        ok = _training_step(fabric, draw) if draw.random() < 0.1 else _one_collective(fabric, draw)
    except CheckFailedError as error:
        if not str(error).startswith(_NO_PLANE) or not _had_no_plane(fabric, since_ps):
            raise
        return False
    assert ok, "wrong results"
    return True


def _one_collective(fabric: Fabric, draw: random.Random) -> bool:
    """Run a collective of all ranks or of some; returns whether its results are right."""
    kind = draw.choice(_KINDS)
    ranks = list(range(fabric.topology.rank_count))
    if some := draw.random() < 0.2:
        draw.shuffle(ranks)
        ranks = ranks[: draw.randrange(2, len(ranks) + 1)]
    inputs = _inputs(draw, kind, len(ranks))
    return fabric.run(
        CollectiveRequest(kind, inputs, "in-network", ranks=ranks if some else None), timeout_s=_TIMEOUT_S
    ).result.ok


def _training_step(fabric: Fabric, draw: random.Random) -> bool:
    """Run a training step of several reductions; returns whether all sums are right."""
    size = draw.choice([64, 1000])
    layers = [Layer(size, forward_ps=5 * US, backward_ps=10 * US)] * draw.choice([2, 5])
    numbers = np.random.default_rng(draw.getrandbits(32))
    gradients = [
        numbers.standard_normal(size * len(layers)).astype(np.float32) for _ in range(fabric.topology.rank_count)
    ]
    step = TrainingStep(tuple(layers), bucket_bytes=4 * size)
    return fabric.training_step(step, "in-network", gradients, timeout_s=_TIMEOUT_S).ok


def episode(seed: int, number: int, collectives: int = COLLECTIVES_PER_EPISODE) -> Counts:
    """Run an episode."""
    draw = random.Random(f"{seed}/{number}")
    counts = Counts()
    control = ControlSection(latency=draw.choice([0, 2, 10, 40]) * US, detection=draw.choice([0, 5, 15]) * US)
    done = 0

    def note(error: BaseException, what: str) -> None:
        where = traceback.extract_tb(error.__traceback__)[-1]
        counts.wrong.append(
            f"episode {number}, {what}: {type(error).__name__}: {error} "
            f"({where.filename.rpartition('/')[2]}:{where.lineno})"
        )

    try:
        # With one of all slots, hosts reduce in a ring where two streams would need the same switches.
        trees, slots = draw.choice([(1, None), (1, None), (2, None), (1, 4096)])
        with Fabric(_topology(draw), clock="virtual", seed=number, control=control, trees=trees, slots=slots) as fabric:
            ended_ps = fabric.hosts.now_ps()
            for done in range(collectives):
                _schedule_flaps(fabric, draw)
                # What the controller knew as this began had happened by then.
                since_ps = ended_ps - control.detection - 4 * control.latency
                try:
                    had_plane = _collective(fabric, draw, since_ps)
                except Exception as error:  # all that is wrong is counted
                    note(error, f"collective {done}")
                else:
                    counts.exact += had_plane
                    counts.without_plane += not had_plane
                ended_ps = fabric.hosts.now_ps()
                fabric.lab.controller.call(asyncio.sleep(draw.choice(_GAPS_US) / 1e6))
            fabric.lab.controller.call(asyncio.sleep(0.002))  # of virtual time: all links are up again
            assert not fabric.lab.controller.failures.links
            assert fabric.lab.operations.lost_planes == ()
            assert _collective(fabric, draw, fabric.hosts.now_ps())
            fabric.summary()  # raises what has gone wrong while links failed
            counts.exact += 1
    except Exception as error:  # all that is wrong is counted
        note(error, f"after collective {done}")
    return counts


def main() -> None:
    """Run episodes, and print how their collectives ended. Exit code 1 if one ended wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collectives", type=int, default=1000, help="how many to run")
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no episode begins")
    parser.add_argument("--seed", type=int, default=1, help="of all choices")
    parser.add_argument("--episodes", type=lambda text: [int(each) for each in text.split(",")], help="run these alone")
    options = parser.parse_args()
    until_s = time.monotonic() + 60 * options.minutes
    counts = Counts()
    numbers = options.episodes or range(options.collectives)
    for number in numbers:
        if time.monotonic() > until_s or (not options.episodes and counts.collectives >= options.collectives):
            break
        found = episode(options.seed, number)
        counts.add(found)
        for line in found.wrong:
            print(line, flush=True)
    kinds = Counter(line.partition(": ")[2].partition(":")[0] for line in counts.wrong)
    print(
        f"{counts.collectives:,} collectives: {counts.exact:,} exact, {counts.without_plane:,} without a plane, "
        f"{len(counts.wrong):,} wrong {dict(kinds) if kinds else ''}".rstrip()
    )
    sys.exit(bool(counts.wrong))


if __name__ == "__main__":
    main()
