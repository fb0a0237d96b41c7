"""Two-rate three-colour meters (RFC 2698, colour-blind), in exact integer arithmetic."""

from __future__ import annotations

from dataclasses import dataclass, field

from switch.backend import MeterConfig

GREEN, YELLOW, RED = 0, 1, 2
NS_PER_S = 10**9


@dataclass(slots=True)
class Meter:
    """Both buckets start full.

    Tokens are kept in units of 1e-9, so that rate times nanoseconds stays whole.
    """

    config: MeterConfig
    last_ns: int
    committed_tokens: int = field(init=False)
    peak_tokens: int = field(init=False)

    def __post_init__(self) -> None:
        self.committed_tokens = self.config.committed_burst * NS_PER_S
        self.peak_tokens = self.config.peak_burst * NS_PER_S

    def colour(self, amount: int, now_ns: int) -> int:
        """The colour of `amount` bytes (or 1 packet) at `now_ns`."""
        elapsed_ns = max(0, now_ns - self.last_ns)
        self.last_ns = max(now_ns, self.last_ns)
        config = self.config
        self.committed_tokens = min(
            config.committed_burst * NS_PER_S, self.committed_tokens + config.committed_rate * elapsed_ns
        )
        self.peak_tokens = min(config.peak_burst * NS_PER_S, self.peak_tokens + config.peak_rate * elapsed_ns)
        needed = amount * NS_PER_S
        if self.peak_tokens < needed:
            return RED
        self.peak_tokens -= needed
        if self.committed_tokens < needed:
            return YELLOW
        self.committed_tokens -= needed
        return GREEN
