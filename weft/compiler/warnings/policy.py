"""Which warnings are reported, and which of them as errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from weft.compiler.report import Report
from weft.compiler.warnings.kinds import Kind

ALL = "all"


@dataclass(frozen=True, slots=True)
class WarningPolicy:
    """Names of kinds that are left out, and of those that are errors; `ALL` stands for every kind.

    A kind that is named takes precedence over `ALL`, and an error over a disabled warning: `--Wdisable
    --Werror=unused` reports only unused names.
    """

    disabled: frozenset[str] = frozenset()
    errors: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in sorted(self.disabled | self.errors):
            if name != ALL and name not in list(Kind):
                raise ValueError(f"unknown warning '{name}' (valid: {', '.join(Kind)})")

    def apply(self, warnings: Iterable[Report]) -> list[Report]:
        """The warnings that remain of `warnings`, some as errors."""
        return [each for each in map(self._apply, warnings) if each is not None]

    def _apply(self, warning: Report) -> Report | None:
        if warning.kind in self.errors:
            return replace(warning, severity="error")
        if warning.kind in self.disabled:
            return None
        if ALL in self.errors:
            return replace(warning, severity="error")
        return None if ALL in self.disabled else warning
