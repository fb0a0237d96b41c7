"""The figures of a run, kept in a file so that they outlive a crash of the process that fuzzes."""

from __future__ import annotations

import json
import os
import resource
from dataclasses import asdict, dataclass, field
from pathlib import Path

_OUTCOMES_SHOWN = 20
_PAGE_BYTES = resource.getpagesize()


def resident_bytes() -> int:
    """Physical memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES


@dataclass(slots=True)
class Statistics:
    """Figures of one target; memory is that of the process that runs now, after warming up and at most."""

    target: str
    seed: int
    elapsed_s: float = 0.0
    executions: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    lines_covered: int = 0
    corpus_size: int = 0
    findings: int = 0
    restarts: int = 0
    slowest_s: float = 0.0
    warm_memory_bytes: int = 0
    memory_bytes: int = 0
    peak_memory_bytes: int = 0

    def count(self, outcome: str) -> None:
        """Add a case that came out like this."""
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    def measure_memory(self, *, warm: bool) -> None:
        """Take the memory's figures; `warm` says that caches have been filled."""
        self.memory_bytes = resident_bytes()
        self.peak_memory_bytes = max(self.peak_memory_bytes, self.memory_bytes)
        if not warm or not self.warm_memory_bytes:
            self.warm_memory_bytes = self.memory_bytes

    def save(self, path: Path) -> None:
        """Write the figures, whole or not at all."""
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(self), indent=1, sort_keys=True) + "\n", encoding="utf-8")
        os.replace(partial, path)

    @classmethod
    def load(cls, path: Path) -> Statistics:
        """Read what `save` wrote."""
        return cls(**json.loads(path.read_text(encoding="utf-8")))

    def table(self) -> str:
        """The figures for people."""
        per_second = self.executions / self.elapsed_s if self.elapsed_s else 0.0
        mebibyte = 1 << 20
        lines = [
            f"target        {self.target}, seed {self.seed}, {self.elapsed_s / 60:.1f} min",
            f"executions    {self.executions:,} ({per_second:.1f}/s)",
            f"findings      {self.findings}, restarts {self.restarts}",
            f"coverage      {self.lines_covered:,} lines, {self.corpus_size:,} cases in the corpus",
            f"memory        {self.warm_memory_bytes / mebibyte:.0f} MiB warm, "
            f"{self.memory_bytes / mebibyte:.0f} MiB at the end, {self.peak_memory_bytes / mebibyte:.0f} MiB at most",
            f"slowest case  {self.slowest_s:.2f} s",
            f"outcomes      {len(self.outcomes)} kinds",
        ]
        frequent = sorted(self.outcomes.items(), key=lambda each: -each[1])[:_OUTCOMES_SHOWN]
        lines += [f"  {count:9,}  {outcome}" for outcome, count in frequent]
        return "\n".join(lines)
