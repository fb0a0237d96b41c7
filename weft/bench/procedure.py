"""A test of a draft, and the registry of a suite's tests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import ModuleType
from typing import ClassVar

from weft.bench.model import Measured
from weft.bench.setup import Setup
from weft.errors import BadInputError
from weft.registry import Registry, classes_of
from weft.trials import Procedure


class BenchTest(ABC):
    """A test as its draft defines it; `section`, `name` and `title` are the draft's."""

    section: ClassVar[str]
    """Number of its section in the draft, such as 5.1."""
    name: ClassVar[str]
    """As `--test` takes it."""
    title: ClassVar[str]
    objective: ClassVar[str]
    """One sentence: what it determines."""
    compares_transports: ClassVar[bool] = False
    """It chooses transports itself, so `--transport` does not concern it."""
    compares_load_balancing: ClassVar[bool] = False
    """It chooses ways of balancing load itself."""

    @abstractmethod
    def run(self, setup: Setup) -> Procedure[Measured]:
        """Yield trials and return what they found.

        Raises:
            NotApplicableError: the fabric cannot have this test.
        """


def _tests_in(module: ModuleType) -> list[tuple[str, BenchTest]]:
    return [(each.name, each()) for each in classes_of(BenchTest, module)]  # type: ignore[type-abstract]


def registry_of(package: str) -> Registry[BenchTest]:
    """Return the tests of a package, by name."""
    return Registry(package, "test", _tests_in, BadInputError)
