"""Flap damping of a link, after RFC 2439: a link that fails often stays out of the routes for a while.

Pure state transitions; callers pass the time. Each failure adds a penalty, which halves in every half-life. Above
`suppress` the link is suppressed until the penalty has fallen to `reuse`. A ceiling on the penalty limits the wait
(section 4.2): the penalty falls from the ceiling to `reuse` in `max_suppress_ps`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from weft.controller.errors import SettingError
from weft.quantities.units import PS_PER_MS

PENALTY_PER_FAILURE = 1000.0


@dataclass(frozen=True)
class FlapDamping:
    """Parameters of flap damping. Penalties are as routers use them for BGP; times suit a fabric, not the Internet.

    Attributes:
        half_life_ps: time in which a penalty halves.
        suppress: penalty above which a link is suppressed; one failure adds `PENALTY_PER_FAILURE`.
        reuse: penalty at which a link is used again.
        max_suppress_ps: longest time from a link's last failure until it is used again.

    Raises:
        SettingError: no link would ever be suppressed, or used again; the message gives the valid values.

    """

    half_life_ps: int = 10 * PS_PER_MS
    suppress: float = 2000.0
    reuse: float = 750.0
    max_suppress_ps: int = 40 * PS_PER_MS

    def __post_init__(self) -> None:
        if self.half_life_ps <= 0 or self.max_suppress_ps <= 0:
            raise SettingError(
                f"flap damping with a half-life of {self.half_life_ps} ps and at most {self.max_suppress_ps} ps",
                valid="both above 0",
            )
        if not 0 < self.reuse < self.suppress:
            raise SettingError(
                f"flap damping with reuse {self.reuse:g} and suppress {self.suppress:g}",
                valid="0 < reuse < suppress",
            )
        if self.ceiling <= self.suppress:
            raise SettingError(
                f"flap damping never suppresses: penalties end at {self.ceiling:.0f}, from which they fall to reuse "
                f"within max_suppress, and suppress is {self.suppress:g}",
                valid="less, or a longer max_suppress",
            )

    @property
    def ceiling(self) -> float:
        """The largest penalty, which falls to `reuse` in `max_suppress_ps`."""
        # No penalty ever reaches 2^512, and much larger powers overflow a float.
        return self.reuse * math.pow(2.0, min(512.0, self.max_suppress_ps / self.half_life_ps))


@dataclass(frozen=True)
class FlapState:
    """A link's penalty at a time, and whether it is suppressed.

    Attributes:
        penalty: penalty at `as_of_ps`.
        as_of_ps: time of the penalty.
        is_suppressed: whether a failure raised the penalty above `suppress`, and it has not fallen to `reuse` since.

    """

    penalty: float = 0.0
    as_of_ps: int = 0
    is_suppressed: bool = False

    def penalty_at(self, now_ps: int, damping: FlapDamping) -> float:
        """Return the penalty at a time. Raises ValueError for times before `as_of_ps`."""
        if now_ps < self.as_of_ps:
            raise ValueError(f"the penalty of {self.as_of_ps} ps is asked for at {now_ps} ps, before it")
        return self.penalty * math.pow(0.5, (now_ps - self.as_of_ps) / damping.half_life_ps)

    def after_failure(self, now_ps: int, damping: FlapDamping) -> FlapState:
        """Return the state after a failure; raises as `penalty_at`."""
        current = self.at(now_ps, damping)
        penalty = min(damping.ceiling, current.penalty + PENALTY_PER_FAILURE)
        return FlapState(penalty, now_ps, current.is_suppressed or penalty > damping.suppress)

    def at(self, now_ps: int, damping: FlapDamping) -> FlapState:
        """Return the state at a time, without further failures; raises as `penalty_at`."""
        reuse_ps = self.reuse_ps(damping)
        suppressed = reuse_ps is not None and now_ps < reuse_ps
        return FlapState(self.penalty_at(now_ps, damping), now_ps, suppressed)

    def reuse_ps(self, damping: FlapDamping) -> int | None:
        """Return when the link will be used again, barring another failure; None if it is not suppressed."""
        if not self.is_suppressed:
            return None
        half_lives = max(0.0, math.log2(self.penalty / damping.reuse))
        return self.as_of_ps + min(damping.max_suppress_ps, math.ceil(half_lives * damping.half_life_ps))
