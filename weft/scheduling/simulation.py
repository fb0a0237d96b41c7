"""Simulation of a policy: jobs arrive, wait, start, are preempted or move, and end."""

from __future__ import annotations

import heapq
from bisect import insort
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.scenario.schedule import Order, ScheduleSection
from weft.scheduling.backfilling import Reservation, reservation
from weft.scheduling.cluster import Cluster, Level
from weft.scheduling.placement import Free, Need, Placement, Room
from weft.scheduling.policy import Policy, Wish
from weft.scheduling.records import JobRecord, Progress, State
from weft.scheduling.spread import Slowdowns
from weft.scheduling.workload import Job

_END, _ARRIVAL, _PATIENCE = range(3)
"""Kinds of events, in the order in which they happen at one time."""
_MOST_MOVES = 4
"""Jobs that may move when one has ended: those with most to gain."""


@dataclass(frozen=True)
class Run:
    """A simulation's outcome: jobs in the order of their arrival, and the cluster over time."""

    records: Sequence[JobRecord]
    states: Sequence[State]


def simulate(
    cluster: Cluster,
    jobs: Sequence[Job],
    policy: Policy,
    settings: ScheduleSection,
    slowdowns: Slowdowns,
    seed: Sequence[int],
) -> Run:
    """Run all jobs to their end under a policy. `seed` draws what the policy chooses at random."""
    return _Simulation(cluster, jobs, policy, settings, slowdowns, seed).run()


class _Simulation:
    def __init__(
        self,
        cluster: Cluster,
        jobs: Sequence[Job],
        policy: Policy,
        settings: ScheduleSection,
        slowdowns: Slowdowns,
        seed: Sequence[int],
    ) -> None:
        self._cluster = cluster
        self._policy = policy
        self._settings = settings
        self._slowdowns = slowdowns
        self._order: Order = settings.order or policy.order
        is_required = settings.required and policy.knows_topology
        self._wish = Wish(cluster.level_number(settings.level), is_required, np.random.default_rng(seed))
        self._patience_s = settings.patience if policy.knows_topology else 0.0
        self._needs: dict[int, Need] = {}
        self._free = Free(cluster)
        self._records = [JobRecord(job) for job in jobs]
        self._progress = [Progress(job, job.run_time_s) for job in jobs]
        self._queue: list[tuple[bool, int]] = []
        """Jobs that wait: urgent ones first, then by arrival."""
        self._sizes: Counter[int] = Counter()
        """Accelerators of jobs that wait."""
        self._running: dict[int, None] = {}
        """Numbers of the jobs that run, those that started first at first."""
        self._slow: dict[int, None] = {}
        """Running jobs that would run faster elsewhere."""
        self._events: list[tuple[float, int, int, int]] = [(job.arrival_s, _ARRIVAL, job.number, 0) for job in jobs]
        self._now_s = 0.0
        self._states: list[State] = []

    def run(self) -> Run:
        """Run until the last job has ended."""
        heapq.heapify(self._events)
        while self._events:
            self._now_s = self._events[0][0]
            arrived: list[int] = []
            has_freed = False
            while self._events and self._events[0][0] == self._now_s:
                _, kind, number, version = heapq.heappop(self._events)
                if kind == _ARRIVAL:
                    self._enqueue(number)
                    arrived.append(number)
                    if self._patience_s:
                        heapq.heappush(self._events, (self._now_s + self._patience_s, _PATIENCE, number, 0))
                elif kind == _PATIENCE:
                    arrived += [number] if self._records[number].started_s < 0 else []
                elif version == self._progress[number].version:
                    self._end(number)
                    has_freed = True
            self._schedule(None if has_freed else arrived)
            if has_freed and self._settings.migration is not None and self._compact(self._settings.migration.cost):
                self._schedule(None)
            self._note()
        return Run(self._records, self._states)

    # --- jobs

    def _need(self, accelerators: int) -> Need:
        found = self._needs.get(accelerators)
        if found is None:
            found = Need.of(accelerators, self._cluster.accelerators_per_host, self._settings.consolidated)
            self._needs[accelerators] = found
        return found

    def _enqueue(self, number: int) -> None:
        job = self._records[number].job
        insort(self._queue, (not job.is_urgent, number))
        self._sizes[job.accelerators] += 1
        self._progress[number].since_s = self._now_s

    def _place_for(self, number: int) -> Placement | None:
        """Return where a job can start now."""
        job = self._records[number].job
        need = self._need(job.accelerators)
        if not self._free.may_hold(need):
            return None
        placement = self._policy.choose(Room(self._cluster, self._free.of_host, need), self._wish)
        if placement is not None and self._now_s < job.arrival_s + self._patience_s:
            leaves = len(np.unique(self._cluster.levels[0].of_host[placement.hosts]))
            if leaves > self._cluster.fewest_leaves(job.accelerators):
                return None
        return placement

    def _start(self, number: int, placement: Placement) -> None:
        record, progress = self._records[number], self._progress[number]
        self._queue.remove((not record.job.is_urgent, number))
        self._sizes[record.job.accelerators] -= 1
        record.waited_s += self._now_s - progress.since_s
        if record.started_s < 0:
            record.started_s = self._now_s
        self._running[number] = None
        self._settle(number, placement)

    def _settle(self, number: int, placement: Placement) -> None:
        """Have a job go on at a place, and foresee its end."""
        record, progress = self._records[number], self._progress[number]
        self._free.take(placement)
        spread = placement.spread(self._cluster)
        record.spread = spread
        progress.placement = placement
        progress.slowdown = self._slowdowns.of_job(record.job.accelerators, spread)
        if progress.slowdown > 1:
            self._slow[number] = None
        progress.since_s = self._now_s
        progress.version += 1
        end_s = self._now_s + progress.remaining_s
        heapq.heappush(self._events, (end_s, _END, number, progress.version))

    def _leave(self, number: int) -> None:
        """Take a running job's accelerators."""
        record, progress = self._records[number], self._progress[number]
        assert progress.placement is not None
        record.held_s += self._now_s - progress.since_s
        progress.advance(self._now_s)
        self._free.give(progress.placement)
        progress.placement = None
        self._slow.pop(number, None)
        progress.version += 1

    def _end(self, number: int) -> None:
        self._leave(number)
        del self._running[number]
        self._records[number].ended_s = self._now_s

    # --- scheduling

    def _schedule(self, arrived: Sequence[int] | None) -> None:
        """Start jobs; `arrived`: only these can, as nothing has become free since the last time."""
        while self._queue:
            first = self._queue[0][1]
            if arrived is not None and first not in arrived:
                break
            placement = self._place_for(first)
            if placement is None and self._settings.preemption is not None and not self._queue[0][0]:
                placement = self._preempt_for(first, self._settings.preemption.cost)
                arrived = None
            if placement is None:
                break
            self._start(first, placement)
        if len(self._queue) > 1 and self._order != "fifo":
            behind = [number for _, number in self._queue[1 : self._settings.depth + 1]]
            self._start_behind([each for each in behind if arrived is None or each in arrived])

    def _start_behind(self, candidates: Sequence[int]) -> None:
        """Start jobs behind the first that waits."""
        held: Reservation | None = None
        failed: set[int] = set()
        for number in candidates:
            job = self._records[number].job
            if job.accelerators in failed:
                continue
            placement = self._place_for(number)
            if placement is None:
                # With patience, a job that has waited longer may take what this one does not.
                if not self._patience_s:
                    failed.add(job.accelerators)
                continue
            if self._order == "easy":
                held = held or self._reservation(self._queue[0][1])
                spread = placement.spread(self._cluster)
                progress = self._progress[number]
                takes_s = progress.overhead_s + progress.left_s * self._slowdowns.of_job(job.accelerators, spread)
                end_s = self._now_s + takes_s * self._settings.limit
                if not held.bears(placement, end_s):
                    continue
                held = held.without(placement, end_s)
            self._start(number, placement)

    def _reservation(self, number: int) -> Reservation:
        ends = []
        for each in self._running:
            progress = self._progress[each]
            assert progress.placement is not None
            left_s = progress.since_s + progress.remaining_s - self._now_s
            ends.append((self._now_s + left_s * self._settings.limit, progress.placement))
        need = self._need(self._records[number].job.accelerators)
        return reservation(self._cluster, self._free, need, self._level_for(need), ends)

    def _level_for(self, need: Need) -> Level:
        """Return the level of which one domain must hold a job."""
        level = self._cluster.levels[self._wish.level]
        hosts = need.hosts(self._cluster.accelerators_per_host)
        return level if self._wish.is_required and hosts <= level.sizes.max() else self._cluster.top

    def _preempt_for(self, number: int, cost_s: float) -> Placement | None:
        """Preempt jobs that are not urgent, those that started last first, and return the place of an urgent one.

        None, and nothing is taken, if all of them together would not make room.
        """
        need = self._need(self._records[number].job.accelerators)
        level = self._level_for(need)
        free = self._free.copy(self._cluster)
        victims: list[int] = []
        for other in reversed(self._running):
            if not self._records[other].job.is_urgent:
                placement = self._progress[other].placement
                assert placement is not None
                free.give(placement)
                victims.append(other)
                if free.may_hold(need) and len(Room(self._cluster, free.of_host, need).fits(level)):
                    break
        else:
            return None
        for other in list(victims):
            placement = self._progress[other].placement
            assert placement is not None
            free.take(placement)
            if len(Room(self._cluster, free.of_host, need).fits(level)):
                victims.remove(other)
            else:
                free.give(placement)
        for other in victims:
            self._leave(other)
            del self._running[other]
            self._progress[other].overhead_s += cost_s
            self._records[other].preemptions += 1
            self._enqueue(other)
        return self._policy.choose(Room(self._cluster, self._free.of_host, need), self._wish)

    def _compact(self, cost_s: float) -> bool:
        """Move running jobs to where they run faster, if they gain more than the move takes; returns if any moved."""
        gains = []
        for number in self._slow:
            progress = self._progress[number]
            left_s = progress.since_s + progress.remaining_s - self._now_s
            gains.append((left_s * (1 - 1 / progress.slowdown) - cost_s, number))
        most = [number for gain_s, number in heapq.nlargest(_MOST_MOVES, gains) if gain_s > 0]
        moved = [self._move(number, cost_s) for number in most]
        return any(moved)

    def _move(self, number: int, cost_s: float) -> bool:
        record, progress = self._records[number], self._progress[number]
        before = progress.placement
        assert before is not None
        self._free.give(before)
        need = self._need(record.job.accelerators)
        placement = self._policy.choose(Room(self._cluster, self._free.of_host, need), self._wish)
        self._free.take(before)
        if placement is None:
            return False
        slowdown = self._slowdowns.of_job(record.job.accelerators, placement.spread(self._cluster))
        end_s = progress.since_s + progress.remaining_s
        work_s = (end_s - self._now_s) / progress.slowdown
        if self._now_s + cost_s + work_s * slowdown >= end_s:
            return False
        self._leave(number)
        progress.overhead_s += cost_s
        record.migrations += 1
        self._settle(number, placement)
        return True

    # --- the cluster over time

    def _note(self) -> None:
        free = self._free.total
        waiting = len(self._queue)
        idle = free if waiting else 0
        unusable = idle if idle and not self._some_could_start() else 0
        self._states.append(State(self._now_s, self._cluster.accelerators - free, waiting, idle, unusable))

    def _some_could_start(self) -> bool:
        """Return whether the free accelerators would hold a job that waits, wherever it stands in the queue."""
        for size, count in self._sizes.items():
            need = self._need(size)
            if not count or not self._free.may_hold(need):
                continue
            room = Room(self._cluster, self._free.of_host, need)
            if len(room.fits(self._level_for(need))):
                return True
        return False
