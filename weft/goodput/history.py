"""One history of a job on a cluster: failures drawn at random, checkpoints, restarts, hosts that are replaced."""

from __future__ import annotations

import heapq
import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from weft.goodput.cluster import Cluster, FailureKind
from weft.scenario.cluster import INTERRUPTING, FailureSection

_AT_ONCE = 4096
"""Draws that are made together, which is faster."""
_ENDING_AT_ONCE = tuple(effect for effect in INTERRUPTING if effect != "corrupt")
"""Effects that end the job when the failure comes; corruption does once somebody notices."""


class Spent(StrEnum):
    """Uses of a cluster's time."""

    KEPT = "kept work"
    LOST = "work lost"
    CHECKPOINTS = "checkpoints"
    RESTARTS = "detection and restart"
    WAITING = "waiting for a host"
    STORAGE = "waiting for storage"
    STALLED = "stalled"
    SLOWED = "slowed"


@dataclass
class History:
    """Where the time went, in seconds; failures by their kind's title, and how often the job was interrupted."""

    spent_s: dict[Spent, float] = field(default_factory=lambda: dict.fromkeys(Spent, 0.0))
    failures: Counter[str] = field(default_factory=Counter)
    interruptions: int = 0

    @property
    def duration_s(self) -> float:
        """All of the time."""
        return sum(self.spent_s.values())

    @property
    def goodput(self) -> float:
        """The share of kept work: the effective training time ratio."""
        return self.spent_s[Spent.KEPT] / self.duration_s


class _Failures:
    """Draws failures: when each comes, and of which kind."""

    def __init__(self, cluster: Cluster, seed: Sequence[int]) -> None:
        self._kinds = [kind for kind in cluster.kinds if kind.rate > 0]
        self._rate = sum(kind.rate for kind in self._kinds)
        self._shares = np.array([kind.rate for kind in self._kinds]) / (self._rate or 1.0)
        self._random = np.random.default_rng(seed)
        self._drawn: deque[tuple[float, int]] = deque()
        self.next_s = 0.0
        self.next_kind: FailureKind | None = None
        self.advance()

    def advance(self) -> None:
        """Draw the next failure."""
        if not self._kinds:
            self.next_s = math.inf
            return
        if not self._drawn:
            times = self._random.exponential(1 / self._rate, _AT_ONCE)
            kinds = self._random.choice(len(self._kinds), _AT_ONCE, p=self._shares)
            self._drawn.extend(zip(times.tolist(), kinds.tolist(), strict=True))
        after_s, kind = self._drawn.popleft()
        self.next_s += after_s
        self.next_kind = self._kinds[kind]


class _Job:
    """The job as it is at `now_s`. Work is counted in seconds at full speed, from the job's beginning."""

    def __init__(self, cluster: Cluster, seed: Sequence[int]) -> None:
        self._cluster = cluster
        self._failures = _Failures(cluster, seed)
        self.history = History()
        self._now_s = 0.0
        self._done_s = 0.0  # work, of which what came after the last checkpoint may be lost
        self._checkpoint_left_s = 0.0  # of the one that is being made
        self._kept_s = 0.0  # work in the last checkpoint that counts
        self._saving: deque[tuple[float, float]] = deque()  # checkpoints: from when they count, and their work
        self._storage_back_s = 0.0  # from when storage can be written and read
        self._spares = cluster.spares
        self._repairs: list[float] = []  # when hosts come back
        self._slow: list[tuple[float, float]] = []  # until when, and how fast
        # When it is noticed, the work that is still right, and until the host has been repaired from then.
        self._corrupted: list[tuple[float, float, float]] = []

    def run(self) -> History:
        """Live to the end of the cluster's time."""
        self._start(0)
        while not self._is_over:
            until_s = min(
                self._failures.next_s,
                self._cluster.duration_s,
                self._slow[0][0] if self._slow else math.inf,
                self._corrupted[0][0] if self._corrupted else math.inf,
                self._storage_back_s if self._storage_is_out else math.inf,
            )
            self._work_until(until_s)
            while self._slow and self._slow[0][0] <= self._now_s:
                heapq.heappop(self._slow)
            if self._is_over:
                break
            if self._corrupted and self._corrupted[0][0] <= self._now_s:
                _, right_s, repair_s = heapq.heappop(self._corrupted)
                self._fall_back(math.floor(right_s / self._cluster.interval_s) * self._cluster.interval_s)
                self._host_leaves(self._now_s + repair_s)
                self._start(1)
            elif self._failures.next_s <= self._now_s:
                self._fail()
        self.history.spent_s[Spent.KEPT] = self._done_s
        return self.history

    @property
    def _is_over(self) -> bool:
        return self._now_s >= self._cluster.duration_s

    @property
    def _storage_is_out(self) -> bool:
        return self._now_s < self._storage_back_s

    # --- work

    @property
    def _speed(self) -> float:
        return min((speed for _, speed in self._slow), default=1.0)

    def _work_until(self, until_s: float) -> None:
        """Work and make checkpoints; nothing else happens before."""
        interval_s, cost_s = self._cluster.interval_s, self._cluster.checkpoint.cost
        speed = self._speed
        while self._now_s < until_s:
            left_s = until_s - self._now_s
            if self._checkpoint_left_s > 0:
                if self._storage_is_out and self._cluster.checkpoint.saving == 0:
                    self._pass(left_s, Spent.STORAGE)  # hosts wait until it is written
                    return
                taken_s = min(left_s, self._checkpoint_left_s)
                self._pass(taken_s, Spent.CHECKPOINTS)
                self._checkpoint_left_s -= taken_s
                if taken_s == left_s and self._checkpoint_left_s > 0:
                    return
                self._checkpoint_left_s = 0.0
                self._save()
                continue
            whole = self._whole_cycles(left_s, interval_s / speed + cost_s)
            if whole:
                self._pass_cycles(whole, interval_s, cost_s, speed)
                continue
            next_s = (math.floor(self._done_s / interval_s * (1 + 1e-12) + 1e-9) + 1) * interval_s
            needed_s = (next_s - self._done_s) / speed
            if needed_s > left_s:
                self._do(left_s * speed, left_s)
                self._now_s = until_s
                return
            self._do(next_s - self._done_s, needed_s)
            self._done_s = next_s
            self._checkpoint_left_s = cost_s
            if cost_s == 0:
                self._save()

    def _save(self) -> None:
        """Write what is done to storage, as soon as it is there."""
        begin_s = max(self._now_s, self._storage_back_s)
        self._saving.append((begin_s + self._cluster.checkpoint.saving, self._done_s))

    def _whole_cycles(self, left_s: float, cycle_s: float) -> int:
        """Return how many whole intervals with their checkpoints come next, but for the last ones."""
        begun = self._done_s % self._cluster.interval_s
        is_at_begin = min(begun, self._cluster.interval_s - begun) < 1e-6
        return max(0, int(left_s / cycle_s) - 2) if is_at_begin and not self._storage_is_out else 0

    def _pass_cycles(self, count: int, interval_s: float, cost_s: float, speed: float) -> None:
        begin_s = round(self._done_s / interval_s)
        self._pass(count * cost_s, Spent.CHECKPOINTS)
        self._do(count * interval_s, count * interval_s / speed)
        self._done_s = (begin_s + count) * interval_s
        self._saving.clear()
        self._saving.append((self._now_s + self._cluster.checkpoint.saving, self._done_s))
        # The one before has been saved since: no checkpoint is saved for longer than a cycle.
        self._kept_s = self._done_s - interval_s

    def _do(self, work_s: float, taken_s: float) -> None:
        self._done_s += work_s
        self._now_s += taken_s
        self.history.spent_s[Spent.SLOWED] += taken_s - work_s

    def _pass(self, taken_s: float, spent: Spent) -> None:
        self._now_s += taken_s
        self.history.spent_s[spent] += taken_s

    # --- failures

    def _fail(self) -> None:
        """Suffer the failure whose time has come, in the middle of work."""
        kind = self._take_failure()
        settings = kind.settings
        if settings.effect == "stall":
            self._stall(settings.stall or 0.0)
        elif not self._begin_quiet(settings):
            self._fall_back(self._last_checkpoint_s())
            leaving = settings.effect == "replace"
            if leaving:
                self._host_leaves(self._now_s + settings.repair_s)
            self._start(int(leaving))

    def _begin_quiet(self, failure: FailureSection) -> bool:
        """Begin what does not stop the job at once; returns whether the failure is of that kind."""
        if failure.effect == "slow":
            heapq.heappush(self._slow, (self._now_s + failure.repair_s, failure.speed or 1.0))
        elif failure.effect == "corrupt":
            noticed_s = self._now_s + (failure.noticed_after or 0.0)
            heapq.heappush(self._corrupted, (noticed_s, self._done_s, failure.repair_s))
        elif failure.effect == "no-storage":
            self._lose_storage(failure.repair_s)
        return failure.effect in ("slow", "corrupt", "no-storage")

    def _lose_storage(self, repair_s: float) -> None:
        """Have checkpoints that are being saved go on when storage is back."""
        self._last_checkpoint_s()  # those that count already do
        before_s = max(self._now_s, self._storage_back_s)
        self._storage_back_s = max(self._storage_back_s, self._now_s + repair_s)
        late_s = self._storage_back_s - before_s
        self._saving = deque((saved_s + late_s, done_s) for saved_s, done_s in self._saving)

    def _take_failure(self) -> FailureKind:
        kind = self._failures.next_kind
        assert kind is not None
        self.history.failures[kind.title] += 1
        self._failures.advance()
        return kind

    def _last_checkpoint_s(self) -> float:
        while self._saving and self._saving[0][0] <= self._now_s:
            self._kept_s = self._saving.popleft()[1]
        return self._kept_s

    def _fall_back(self, kept_s: float) -> None:
        """Go back to a checkpoint. Whoever corrupts results goes on doing so from there."""
        kept_s = min(kept_s, self._last_checkpoint_s())
        self.history.interruptions += 1
        self.history.spent_s[Spent.LOST] += self._done_s - kept_s
        self._done_s = self._kept_s = kept_s
        self._checkpoint_left_s = 0.0
        self._saving.clear()
        self._corrupted = [(noticed_s, min(right_s, kept_s), back) for noticed_s, right_s, back in self._corrupted]
        heapq.heapify(self._corrupted)

    def _host_leaves(self, back_s: float) -> None:
        heapq.heappush(self._repairs, back_s)

    def _stall(self, stall_s: float) -> None:
        """Wait, unless the job ends meanwhile; waits of several failures at once are one."""
        until_s = min(self._now_s + stall_s, self._cluster.duration_s)
        while self._now_s < until_s:
            next_s = min(until_s, self._failures.next_s)
            self._pass(next_s - self._now_s, Spent.STALLED)
            if self._failures.next_s > self._now_s:
                continue
            kind = self._failures.next_kind
            assert kind is not None
            if kind.settings.effect in _ENDING_AT_ONCE:
                return  # the next thing that happens
            settings = self._take_failure().settings
            if not self._begin_quiet(settings):
                until_s = min(max(until_s, self._now_s + (settings.stall or 0.0)), self._cluster.duration_s)

    def _start(self, missing: int) -> None:
        """Detect, find hosts in the place of those that are missing, and start; from the beginning after a failure."""
        detection_s = self._cluster.restart.detection if self._now_s > 0 else 0.0
        while not self._is_over:
            failed = self._idle(detection_s, Spent.RESTARTS)
            while not failed and missing and not self._is_over:
                self._count_repaired()
                if self._spares:
                    self._spares -= 1
                    missing -= 1
                    continue
                back_s = self._repairs[0] if self._repairs else math.inf
                failed = self._idle(back_s - self._now_s, Spent.WAITING)
            if not failed:
                failed = self._wait_for_storage() or self._idle(self._cluster.restart.start, Spent.RESTARTS)
            # Storage may have been lost while the checkpoint was read.
            if not failed and not self._wait_for_storage():
                return
            missing += self._fail_while_down()
            detection_s = self._cluster.restart.detection

    def _wait_for_storage(self) -> bool:
        """Wait until a checkpoint can be read; returns whether a failure that ends the job has come sooner."""
        while self._storage_is_out and not self._is_over:  # another outage may come meanwhile
            if self._idle(self._storage_back_s - self._now_s, Spent.STORAGE):
                return True
        return False

    def _count_repaired(self) -> None:
        while self._repairs and self._repairs[0] <= self._now_s:
            heapq.heappop(self._repairs)
            self._spares += 1

    def _idle(self, longest_s: float, spent: Spent) -> bool:
        """Let time pass; returns whether a failure that ends the job has come sooner, which is then the next."""
        until_s = min(self._now_s + longest_s, self._cluster.duration_s)
        while self._failures.next_s <= until_s:
            self._pass(max(0.0, self._failures.next_s - self._now_s), spent)
            kind = self._failures.next_kind
            assert kind is not None
            if kind.settings.effect in _ENDING_AT_ONCE:
                return True
            self._begin_quiet(self._take_failure().settings)
        self._pass(max(0.0, until_s - self._now_s), spent)
        return False

    def _fail_while_down(self) -> int:
        """Take a failure of a job that has not started yet; returns how many hosts are missing by it."""
        settings = self._take_failure().settings
        self.history.interruptions += 1
        if settings.effect != "replace":
            return 0
        self._host_leaves(self._now_s + settings.repair_s)
        return 1


def live(cluster: Cluster, seed: Sequence[int]) -> History:
    """Return a history, which `seed` draws: whole numbers, such as a scenario's seed and the history's number."""
    return _Job(cluster, seed).run()
