"""Chooses among shortest paths those that keep the fullest link least loaded, given who sends how much to whom.

Streams are placed one by one, the largest first, each over the path with the least fullest link: the greedy rule for
scheduling jobs on machines (R. Graham, Bounds on Multiprocessing Timing Anomalies, 1969). A search then moves
destinations away from the fullest link, also in chains. Switches forward by destination, so the paths to a
destination form a tree: streams that meet on their way to it go on together.

Finding the best paths is NP-hard. Two figures say how good the found ones are: a bound that no routing can beat, and
what hashes achieve on average, which is taken instead where it is better.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

import numpy as np

from weft.controller.routing.balanced_paths import Links
from weft.controller.routing.routes import member_weights
from weft.quantities.arrays import Integers
from weft.quantities.units import PS_PER_S

MOST_DRAWS = 32
"""Draws of hashes whose fullest links are averaged; fewer if there are many queue pairs, but at least four."""
_MOST_HASHED = 1_000_000
_MOST_MOVES = 4096
_LEAST_PATIENCE = 64
"""Moves of the search: in all, and without a better placement, in addition to eight for each destination."""
_ALIKE = 8
"""Loads count as equal in a search if they differ by less than this part of the fullest link's."""
_ENOUGH = 100
"""The search ends within a hundredth of the bound."""
_BITS = 8

_Step = tuple[int, int, int]
"""Load of the fullest link on a path, sum of the loads of its links, and its first link."""
_Best = Callable[[int], _Step]
Hops = dict[int, dict[int, int]]
"""For each destination, the link by which each switch, by place, sends to it."""


@dataclass(frozen=True)
class Stream:
    """Demand of a switch's hosts for one destination: the bytes of each queue pair.

    Attributes:
        entry: place of the sending hosts' switch.
        destination: number of the destination.
        exit: place of the destination's switch.
        sizes_bytes: bytes of each queue pair.

    """

    entry: int
    destination: int
    exit: int
    sizes_bytes: tuple[int, ...]

    @property
    def size_bytes(self) -> int:
        """Bytes of all queue pairs."""
        return sum(self.sizes_bytes)


@dataclass(frozen=True)
class ChosenPaths:
    """The chosen links, empty if hashes do better, and loads of the fullest link (see `DemandLoads`)."""

    hops: Hops
    fullest_ps: int
    ecmp_ps: int
    bound_ps: int


class DemandPaths:
    """Chooses the paths of streams in a plane with these links, of which some are `down`."""

    def __init__(self, links: Links, rates_bps: Sequence[int], down: Collection[int] = ()) -> None:
        self._links, self._rates = links, tuple(rates_bps)
        self._down = frozenset(down)
        self._into: list[list[int]] = [[] for _ in links.of]
        for link, end in enumerate(links.end):
            if link not in self._down:
                self._into[end].append(link)
        self.ways_to = cache(self._ways_to)
        """For the place of a switch: by place, the links of shortest paths to it, of which hashes choose one."""

    def choose(self, streams: Iterable[Stream], kept: Mapping[int, Mapping[int, int]] | None = None) -> ChosenPaths:
        """Return the paths of streams; those without a path are left out.

        `kept` are links chosen before, which are kept where they are up and still on a shortest path.
        """
        sent = [each for each in streams if each.entry != each.exit and each.entry in self.ways_to(each.exit)]
        sent.sort(key=lambda each: (-each.size_bytes, each.entry, each.destination))
        placement = _Placement(self, sent)
        bound_ps = self._bound_ps(sent)
        if kept is None:
            placement.place_in_rounds(bound_ps)
        else:
            placement.place_around(kept)
        fullest_ps, ecmp_ps = placement.fullest_ps, self._hashed_ps(sent)
        if kept is not None and fullest_ps > ecmp_ps:
            return self.choose(sent)
        if fullest_ps > ecmp_ps:
            return ChosenPaths({}, ecmp_ps, ecmp_ps, bound_ps)
        return ChosenPaths(placement.used_hops(), fullest_ps, ecmp_ps, bound_ps)

    def time_ps(self, link: int, size_bytes: int) -> int:
        """Return the time that bytes take at a link's rate."""
        return size_bytes * _BITS * PS_PER_S // self._rates[link]

    def end(self, link: int) -> int:
        """Return the place of the switch that a link leads to."""
        return self._links.end[link]

    def _ways_to(self, exit_: int) -> dict[int, tuple[int, ...]]:
        hops = {exit_: 0}
        ways: dict[int, list[int]] = {exit_: []}
        reached = [exit_]
        for place in reached:
            for link in self._into[place]:
                start = self._links.start[link]
                if start not in hops:
                    hops[start] = hops[place] + 1
                    ways[start] = []
                    reached.append(start)
                if hops[start] == hops[place] + 1:
                    ways[start].append(link)
        return {place: tuple(sorted(links)) for place, links in ways.items()}

    def _hashed_ps(self, streams: Sequence[Stream]) -> int:
        """Return the mean load of the fullest link if each queue pair takes a next hop at random at each switch."""
        sizes = np.array([size_bytes for each in streams for size_bytes in each.sizes_bytes], np.float64)
        if not len(sizes):
            return 0
        counts = [len(each.sizes_bytes) for each in streams]
        exits = {exit_: number for number, exit_ in enumerate(dict.fromkeys(each.exit for each in streams))}
        rows = np.repeat([exits[each.exit] * len(self._links.of) for each in streams], counts)
        entries = np.repeat([each.entry for each in streams], counts)
        first, count, members = self._groups(exits)
        ps_per_byte = _BITS * PS_PER_S / np.array(self._rates, np.float64)
        ends = np.array(self._links.end, np.int64)
        drawn = np.random.default_rng(0)
        draws = max(4, min(MOST_DRAWS, _MOST_HASHED // len(sizes)))
        fullest_ps = 0.0
        for _ in range(draws):
            load = np.zeros(len(self._rates))
            places, flows = entries, np.arange(len(sizes))
            while len(flows):
                groups = rows[flows] + places
                links = members[first[groups] + (drawn.random(len(flows)) * count[groups]).astype(np.int64)]
                load += np.bincount(links, sizes[flows], len(load))
                places = ends[links]
                under_way = count[rows[flows] + places] > 0
                places, flows = places[under_way], flows[under_way]
            fullest_ps += float((load * ps_per_byte).max())
        return round(fullest_ps / draws)

    def _groups(self, exits: Iterable[int]) -> tuple[Integers, Integers, Integers]:
        """Return each switch's ECMP group towards each exit: where it begins in the third array, its size, and members.

        A link is as often a member as its weight says.
        """
        first, count, members = list[int](), list[int](), list[int]()
        for exit_ in exits:
            ways = self.ways_to(exit_)
            for place in range(len(self._links.of)):
                links = ways.get(place, ())
                weights = _weights(tuple(self._rates[link] for link in links))
                first.append(len(members))
                members += [link for link, weight in zip(links, weights, strict=True) for _ in range(weight)]
                count.append(len(members) - first[-1])
        return np.array(first, np.int64), np.array(count, np.int64), np.array(members, np.int64)

    def _bound_ps(self, streams: Sequence[Stream]) -> int:
        """Return a load that the fullest link has at least.

        What leaves or enters a switch goes over its live links, and a queue pair over one of them.
        """
        leaving: dict[int, int] = {}
        entering: dict[int, int] = {}
        for each in streams:
            leaving[each.entry] = leaving.get(each.entry, 0) + each.size_bytes
            entering[each.exit] = entering.get(each.exit, 0) + each.size_bytes
        found = max((self._alone_ps(each) for each in streams), default=0)
        for sums, links_of in ((leaving, self._links.of), (entering, self._into)):
            for place, size_bytes in sums.items():
                rate_bps = sum(self._rates[link] for link in links_of[place] if link not in self._down)
                found = max(found, size_bytes * _BITS * PS_PER_S // rate_bps)
        return found

    def _alone_ps(self, stream: Stream) -> int:
        """Return the load of a stream's largest queue pair on its switch's fastest link."""
        links = [link for link in self._links.of[stream.entry] if link not in self._down]
        return min(self.time_ps(link, max(stream.sizes_bytes)) for link in links)


@cache
def _weights(rates_bps: tuple[int, ...]) -> list[int]:
    return member_weights(rates_bps) if rates_bps else []


class _Placement:
    """Streams, largest first, and the links on which they have been placed."""

    def __init__(self, paths: DemandPaths, streams: Sequence[Stream]) -> None:
        self._paths, self._streams = paths, streams
        self._placed: dict[int, list[Stream]] = {each.destination: [] for each in streams}
        self._hops: Hops = {each.destination: {} for each in streams}
        self._load_ps: dict[int, int] = {}
        self._over: dict[int, dict[int, int]] = {}  # bytes of each destination, by link

    @property
    def fullest_ps(self) -> int:
        """Load of the fullest link."""
        return max(self._load_ps.values(), default=0)

    def used_hops(self) -> Hops:
        """Return the links at switches that have others to choose from."""
        found: Hops = {}
        for destination, streams in self._placed.items():
            ways = self._paths.ways_to(streams[0].exit)
            hops = {place: link for place, link in self._hops[destination].items() if len(ways[place]) > 1}
            if hops:
                found[destination] = hops
        return found

    def place_around(self, kept: Mapping[int, Mapping[int, int]]) -> None:
        """Place all streams, over links chosen before where they are up and still on a shortest path.

        Streams over such links go first, so that the others go where they leave room.
        """
        for each in self._streams:
            ways = self._paths.ways_to(each.exit)
            self._hops[each.destination] = {
                place: link for place, link in kept.get(each.destination, {}).items() if link in ways.get(place, ())
            }
        for stream in sorted(self._streams, key=lambda each: each.entry not in self._hops[each.destination]):
            self._place_first(stream)

    def place_in_rounds(self, bound_ps: int) -> None:
        """Place all streams, streams of like size in a round, and improve the placement after each.

        Large streams are spread before small ones stand in the way of chains.
        """
        for _, streams in groupby(self._streams, key=lambda each: each.size_bytes.bit_length()):
            for stream in streams:
                self._place_first(stream)
            self._improve(bound_ps)

    def _place_first(self, stream: Stream) -> None:
        self._placed[stream.destination].append(stream)
        self._place(stream)

    def _improve(self, bound_ps: int) -> None:
        """Move destinations away from the fullest link, one after the other, and keep the best of all placements.

        A move may fill another link, from which the next one moves another destination: such chains solve what single
        improvements do not, as two flows that each need the other's path. Which of the fullest links and of its
        destinations is drawn, the same in every run, so that chains do not go in circles.
        """
        best, best_hops = self._objective(), self._copied_hops()
        enough_ps = bound_ps + bound_ps // _ENOUGH
        drawn = random.Random(0)
        latest = -1
        patience = _LEAST_PATIENCE + 8 * len(self._hops)
        last_better = 0
        for step in range(1, _MOST_MOVES + 1):
            if best[0] <= enough_ps or step - last_better > patience:
                break
            fullest_ps = self.fullest_ps
            fullest = drawn.choice([link for link, load_ps in self._load_ps.items() if load_ps == fullest_ps])
            over = [each for each, size_bytes in self._over[fullest].items() if size_bytes]
            latest = drawn.choice([each for each in over if each != latest] or over)
            self._withdraw(latest)
            self._hops[latest] = {}
            for stream in self._placed[latest]:
                self._place(stream, fullest, drawn)
            now = self._objective()
            if now < best:
                best, best_hops, last_better = now, self._copied_hops(), step
        self._restore(best_hops)

    def _objective(self) -> tuple[int, int]:
        """Return the fullest link's load, and how many links have it."""
        loads = list(self._load_ps.values())
        fullest_ps = max(loads, default=0)
        return fullest_ps, loads.count(fullest_ps)

    def _copied_hops(self) -> Hops:
        return {destination: dict(hops) for destination, hops in self._hops.items()}

    def _restore(self, hops: Hops) -> None:
        self._hops, self._load_ps, self._over = hops, {}, {}
        for streams in self._placed.values():
            for stream in streams:
                self._place(stream)

    def _place(self, stream: Stream, avoided: int = -1, drawn: random.Random | None = None) -> None:
        """Send a stream over the path with the least fullest link; of several, the one with the least sum of loads.

        A link is `avoided` where there is another; equal paths are `drawn`, or the first is taken.
        """
        hops, ways = self._hops[stream.destination], self._paths.ways_to(stream.exit)
        size_bytes = stream.size_bytes
        # Loads that hardly differ count as equal: otherwise little streams would decide, and chains go in circles.
        unit_ps = 1 if drawn is None else max(1, self.fullest_ps // _ALIKE)
        known: dict[int, _Step] = {}

        def best(place: int) -> _Step:
            """Return the fullest link's load and the sum of loads on the best path from a switch, and its link."""
            found = known.get(place)
            if found is None:
                links = (hops[place],) if place in hops else ways[place]
                if avoided in links and len(links) > 1:
                    links = tuple(link for link in links if link != avoided)
                if drawn is not None:
                    links = tuple(drawn.sample(links, len(links)))
                steps = (self._over_link(link, size_bytes, best) for link in links)
                found = min(steps, key=lambda step: (step[0] // unit_ps, step[1] // unit_ps), default=(0, 0, -1))
                known[place] = found
            return found

        place = stream.entry
        while place != stream.exit:
            link = best(place)[2]
            hops[place] = link
            self._add(link, stream.destination, size_bytes)
            place = self._paths.end(link)

    def _over_link(self, link: int, size_bytes: int, best: _Best) -> _Step:
        after_ps = self._load_ps.get(link, 0) + self._paths.time_ps(link, size_bytes)
        fullest_ps, sum_ps, _ = best(self._paths.end(link))
        return max(after_ps, fullest_ps), after_ps + sum_ps, link

    def _add(self, link: int, destination: int, size_bytes: int, sign: int = 1) -> None:
        over = self._over.setdefault(link, {})
        over[destination] = over.get(destination, 0) + sign * size_bytes
        # Rounded alike in both directions, so that what is withdrawn leaves nothing behind.
        self._load_ps[link] = self._load_ps.get(link, 0) + sign * self._paths.time_ps(link, size_bytes)

    def _withdraw(self, destination: int) -> None:
        for stream in self._placed[destination]:
            place = stream.entry
            while place != stream.exit:
                link = self._hops[destination][place]
                self._add(link, destination, stream.size_bytes, sign=-1)
                place = self._paths.end(link)
