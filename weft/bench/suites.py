"""The two suites: their drafts, KPIs and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.bench.kpis import INFERENCE_KPIS, TRAINING_KPIS, Kpi
from weft.bench.procedure import BenchTest, registry_of
from weft.errors import BadInputError
from weft.hints import did_you_mean
from weft.registry import Registry


@dataclass(frozen=True)
class Suite:
    """A suite; `draft` is the document that defines it, in the version that the tests follow."""

    name: str
    title: str
    draft: str
    kpis: tuple[Kpi, ...]
    registry: Registry[BenchTest]

    @property
    def tests(self) -> list[BenchTest]:
        """All tests in the order of the draft."""
        return sorted(self.registry.values(), key=lambda test: [int(part) for part in test.section.split(".")])

    def chosen(self, names: Sequence[str]) -> list[BenchTest]:
        """Return the tests with these names or numbers of sections, in the draft's order; without any, all.

        `7` stands for all tests of the category 7.

        Raises:
            BadInputError: there is no such test.
        """
        if not names:
            return self.tests
        known = [word for test in self.tests for word in (test.name, test.section)]
        for name in names:
            if not any(_is_named(test, name) for test in self.tests):
                raise BadInputError(f"no test '{name}'; {did_you_mean(name, known)}", place="--test")
        return [test for test in self.tests if any(_is_named(test, name) for name in names)]


def _is_named(test: BenchTest, name: str) -> bool:
    return name in (test.name, test.section, test.section.split(".")[0])


SUITES: Mapping[str, Suite] = {
    suite.name: suite
    for suite in (
        Suite(
            "training",
            "AI training fabric",
            "draft-calabria-bmwg-ai-fabric-training-bench-00 (February 2026)",
            TRAINING_KPIS,
            registry_of("weft.bench.training"),
        ),
        Suite(
            "inference",
            "AI inference serving fabric",
            "draft-calabria-bmwg-ai-fabric-inference-bench-02 (June 2026)",
            INFERENCE_KPIS,
            registry_of("weft.bench.inference"),
        ),
    )
}
