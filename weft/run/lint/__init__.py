"""Findings before a run: settings that are valid one by one, but cannot work together. One rule per file of `rules`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import ModuleType

from weft.errors import InvalidValueError
from weft.registry import Registry, classes_of
from weft.run.lint.plan import Plan
from weft.run.lint.rule import Finding, Rule
from weft.run.spec import RunSpec
from weft.switch.daemon.config import SwitchConfig


def _rules_in(module: ModuleType) -> Iterator[tuple[str, Rule]]:
    return ((rule.name, rule()) for rule in classes_of(Rule, module))  # type: ignore[type-abstract]


RULES: Registry[Rule] = Registry(f"{__name__}.rules", "rule", _rules_in, InvalidValueError)


def findings_of(spec: RunSpec, configs: Sequence[SwitchConfig]) -> list[Finding]:
    """Return what all rules find in a run's description, in order of the rules' names.

    `configs` are the configurations of all switches (`Lab.switch_configs`).
    """
    plan = Plan(spec, configs)
    return [finding for rule in RULES.values() for finding in rule.find(plan)]


__all__ = ["RULES", "Finding", "Plan", "Rule", "findings_of"]
