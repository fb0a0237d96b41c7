"""The process that fuzzes: makes cases, runs them, keeps those that reach new lines and those that fail."""

from __future__ import annotations

import faulthandler
import hashlib
import mmap
import random
import signal
import struct
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from fuzz.coverage import LineCoverage
from fuzz.statistics import Statistics
from fuzz.target import Target

_SAVE_INTERVAL_S = 5.0
_WARM_UP_SHARE = 0.1
_RECENT = 50
DUMP_SIGNAL = signal.SIGUSR1
"""Makes the worker write where all its threads are."""
PROGRESS = struct.Struct("<Qdd")
"""Cases begun; when the last one began (CLOCK_MONOTONIC, seconds), and the process's CPU time then."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The files of a run."""

    root: Path

    @property
    def current(self) -> Path:
        """The case that is running: the evidence that a crashed process leaves."""
        return self.root / "current"

    @property
    def slowest(self) -> Path:
        """The case that took longest."""
        return self.root / "slowest"

    @property
    def progress(self) -> Path:
        """`PROGRESS`, shared with the supervisor."""
        return self.root / "progress"

    @property
    def statistics(self) -> Path:
        """The figures."""
        return self.root / "statistics.json"

    @property
    def corpus(self) -> Path:
        """Cases that reached something new."""
        return self.root / "corpus"

    @property
    def findings(self) -> Path:
        """Cases that failed, each with its report."""
        return self.root / "findings"

    def prepare(self) -> None:
        """Create what does not exist yet."""
        self.corpus.mkdir(parents=True, exist_ok=True)
        self.findings.mkdir(exist_ok=True)
        self.progress.write_bytes(PROGRESS.pack(0, time.monotonic(), 0.0))


def keep_finding(folder: Folder, target: Target, case: bytes, key: str, report: str) -> bool:
    """Keep a failed case with its report; False if there is one with the same key."""
    name = hashlib.sha256(key.encode()).hexdigest()[:12]
    path = folder.findings / f"{name}{target.suffix}"
    if path.exists():
        return False
    path.write_bytes(case)
    path.with_suffix(".report").write_text(report, encoding="utf-8")
    return True


def failure_key(error: BaseException) -> str:
    """Failures with the same type and the same innermost places of the program are one finding."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    message = str(error)[:40] if not frames or "fuzz/" in frames[-1].filename else ""
    return "|".join([type(error).__name__, message, *(f"{frame.filename}:{frame.name}" for frame in frames)])


class Worker:
    """Fuzzes one target until its time is over."""

    def __init__(self, target: Target, folder: Folder, statistics: Statistics, duration_s: float) -> None:
        self._target = target
        self._folder = folder
        self._statistics = statistics
        self._duration_s = duration_s
        self._coverage = LineCoverage(target.covered_paths)
        self._rng = random.Random(f"{statistics.seed}.{statistics.restarts}")
        self._seeds = target.seeds()
        self._corpus: list[bytes] = []

    def run(self) -> None:
        """Fuzz."""
        faulthandler.enable()
        faulthandler.register(DUMP_SIGNAL)
        with self._folder.progress.open("r+b") as file, mmap.mmap(file.fileno(), PROGRESS.size) as progress:
            self._run(progress)

    def _run(self, progress: mmap.mmap) -> None:
        statistics = self._statistics
        started_s = saved_s = time.monotonic()
        before_s = statistics.elapsed_s
        warm_s = before_s + _WARM_UP_SHARE * (self._duration_s - before_s)
        waiting = list(self._seeds)
        waiting += [path.read_bytes() for path in sorted(self._folder.corpus.iterdir())]
        self._coverage.start()
        while statistics.elapsed_s < self._duration_s or waiting:
            case = waiting.pop() if waiting else self._target.mutate(self._rng, self._parents())
            now_s = time.monotonic()
            self._folder.current.write_bytes(case)
            progress[:] = PROGRESS.pack(statistics.executions + 1, now_s, time.process_time())
            self._execute(case)
            ended_s = time.monotonic()
            statistics.executions += 1
            if ended_s - now_s > statistics.slowest_s:
                statistics.slowest_s = ended_s - now_s
                self._folder.slowest.write_bytes(case)
            statistics.elapsed_s = before_s + ended_s - started_s
            if ended_s - saved_s > _SAVE_INTERVAL_S:
                self._save(warm=statistics.elapsed_s >= warm_s)
                saved_s = ended_s
        self._coverage.stop()
        self._save(warm=True)

    def _parents(self) -> list[bytes]:
        """Two cases: often seeds, which are valid, so that mutations of mutations do not merely accumulate damage."""
        pools = [self._seeds, self._corpus[-_RECENT:] or self._seeds, self._corpus or self._seeds]
        return [self._rng.choice(self._rng.choice(pools)) for _ in range(2)]

    def _execute(self, case: bytes) -> None:
        lines = self._coverage.lines
        try:
            outcome = self._target.execute(case)
        except Exception as error:
            outcome = f"FINDING {type(error).__name__}"
            report = "".join(traceback.format_exception(error))
            if keep_finding(self._folder, self._target, case, failure_key(error), report):
                self._statistics.findings += 1
        else:
            if self._coverage.lines > lines or outcome not in self._statistics.outcomes or not self._corpus:
                self._corpus.append(case)
                name = hashlib.sha256(case).hexdigest()[:16]
                (self._folder.corpus / name).write_bytes(case)
        self._statistics.count(outcome)

    def _save(self, *, warm: bool) -> None:
        self._statistics.lines_covered = self._coverage.lines
        self._statistics.corpus_size = len(self._corpus)
        self._statistics.measure_memory(warm=warm)
        self._statistics.save(self._folder.statistics)
