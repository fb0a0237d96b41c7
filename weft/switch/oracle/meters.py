"""Three-colour, colour-blind meters in exact integer arithmetic: two rates (RFC 2698) or one (RFC 2697)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from weft.quantities.units import NS_PER_S
from weft.switch.backend import CounterValue, MeterConfig, MeterState

GREEN, YELLOW, RED = 0, 1, 2


@dataclass(slots=True)
class Meter:
    """Configuration, buckets and counts by colour.

    Tokens are in units of 1e-9, so that rate times nanoseconds is an integer. `second_tokens` is the peak bucket or,
    with a single rate, the excess bucket.
    """

    config: MeterConfig | None = None
    last_ns: int = 0
    committed_tokens: int = 0
    second_tokens: int = 0
    counts: tuple[CounterValue, CounterValue, CounterValue] = (CounterValue(),) * 3

    def configure(self, config: MeterConfig | None, now_ns: int) -> None:
        """Start with full buckets; without a configuration everything is green."""
        self.config = config
        if config is not None:
            self.last_ns = now_ns
            self.committed_tokens = config.committed_burst * NS_PER_S
            self.second_tokens = _second_burst(config) * NS_PER_S

    def state(self) -> MeterState:
        """Return the state, for `restore`."""
        buckets = (self.last_ns, self.committed_tokens, self.second_tokens)
        return MeterState(self.config, self.counts, buckets)

    def restore(self, state: MeterState) -> None:
        """Restore a state returned by `state`."""
        self.config, self.counts = state.config, state.counts
        self.last_ns, self.committed_tokens, self.second_tokens = state.buckets

    def execute(self, amount: int, length_bytes: int, now_ns: int) -> int:
        """Return the colour of `amount` bytes (or 1 packet) at `now_ns`, and count the packet."""
        colour = GREEN if self.config is None else self._mark(self.config, amount * NS_PER_S, now_ns)
        counts = list(self.counts)
        old = counts[colour]
        counts[colour] = replace(old, packets=old.packets + 1, bytes=old.bytes + length_bytes)
        self.counts = (counts[GREEN], counts[YELLOW], counts[RED])
        return colour

    def _mark(self, config: MeterConfig, needed: int, now_ns: int) -> int:
        self._fill(config, max(0, now_ns - self.last_ns))
        self.last_ns = max(now_ns, self.last_ns)
        if config.excess_burst is None:
            if self.second_tokens < needed:
                return RED
            self.second_tokens -= needed
            if self.committed_tokens < needed:
                return YELLOW
            self.committed_tokens -= needed
            return GREEN
        if self.committed_tokens >= needed:
            self.committed_tokens -= needed
            return GREEN
        if self.second_tokens >= needed:
            self.second_tokens -= needed
            return YELLOW
        return RED

    def _fill(self, config: MeterConfig, elapsed_ns: int) -> None:
        committed = self.committed_tokens + config.committed_rate * elapsed_ns
        self.committed_tokens = min(config.committed_burst * NS_PER_S, committed)
        spilled = committed - self.committed_tokens
        brought = spilled if config.excess_burst is not None else config.peak_rate * elapsed_ns
        self.second_tokens = min(_second_burst(config) * NS_PER_S, self.second_tokens + brought)


def _second_burst(config: MeterConfig) -> int:
    return config.peak_burst if config.excess_burst is None else config.excess_burst
