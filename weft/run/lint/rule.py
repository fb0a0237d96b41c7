"""The definition of a rule; each file of `rules` defines one or more as classes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from weft.quantities.plain_data import PlainData
from weft.run.lint.plan import Plan
from weft.scenario import Places
from weft.scenario.dotted import split_path


@dataclass(frozen=True)
class Finding(PlainData):
    """Settings that cannot work together.

    Attributes:
        rule: name of the rule; `refused` for what `weft run` refuses.
        key: key of the scenario that decides it.
        consequence: what follows from it, in one sentence.
        settings: values by key with which the finding is gone, as the scenario's file has them.
        instead: another way out, in words; empty without one.
        place: file and line of the key, or the command's option; empty until `located`.
    """

    rule: str
    key: str
    consequence: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    instead: str = ""
    place: str = ""

    def located(self, places: Places) -> Finding:
        """Return the finding with the place of its key."""
        own = {name: getattr(self, name) for name in ("rule", "key", "consequence", "settings", "instead")}
        return Finding(**own, place=places.of(split_path(self.key)) if self.key else places.name)

    @property
    def remedy(self) -> str:
        """The settings, and the other way out, in words."""
        values = " and ".join(f"{key}: {value}" for key, value in self.settings.items())
        return "; or ".join(part for part in (f"set {values}" if values else "", self.instead) if part)

    @property
    def sentence(self) -> str:
        """The finding without its place, as results have it."""
        key = f"{self.key}: " if self.key else ""
        return f"{key}{self.consequence}" + (f" ({self.remedy})" if self.remedy else "")

    @property
    def line(self) -> str:
        """The finding with its place."""
        if self.key and self.place.endswith(f" {self.key}"):  # an option of the command, which names the key
            return f"{self.place}{self.sentence.removeprefix(self.key)}"
        return f"{self.place}: {self.sentence}" if self.place else self.sentence


class Rule(ABC):
    """A rule.

    Attributes:
        name: its name.
        when: when it finds something, for docs/lint.md.
        reason: why that cannot work, for docs/lint.md.
    """

    name: ClassVar[str]
    when: ClassVar[str]
    reason: ClassVar[str]

    @abstractmethod
    def find(self, plan: Plan) -> Iterator[Finding]:
        """Yield what the plan has of it."""

    def finding(self, key: str, consequence: str, settings: Mapping[str, Any], instead: str = "") -> Finding:
        """Return a finding of this rule."""
        return Finding(self.name, key, consequence, settings, instead)
