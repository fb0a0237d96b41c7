"""Base of the adapters: what each says of its simulator, and how a run goes."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from peers.commands import Spent, measured
from peers.work import Work
from weft.errors import BadInputError, EnvironmentLacksError
from weft.quantities.arrays import Integers

LIMIT_S = 3600.0


class MissingPeerError(EnvironmentLacksError):
    """The program of a peer is not there; the message names the variable and what to build."""


class UnfitWorkError(BadInputError):
    """A peer's formats or models have no place for something in the work."""


@dataclass(frozen=True)
class PeerRun:
    """What a simulator spent, and when flows ended.

    Attributes:
        spent: processor time and peak memory of the whole command.
        end_ps: when the last flow ended, in emulated time from the beginning of the run.
        completion_ps: of each flow in the work's order, from its start to its end; None where only ranks' ends are
            known.
        printed: the simulator's standard output.
    """

    spent: Spent
    end_ps: int
    completion_ps: Integers | None
    printed: str = ""


class Peer(ABC):
    """An adapter. A subclass is a module in peers/adapters, with an instance as `KIND`."""

    name: str
    """By which commands name it."""
    title: str
    """For tables."""
    variable: str
    """Environment variable that names the program."""
    executable: str = ""
    """File name looked up on PATH without the variable; empty: only the variable counts."""
    source: str
    """Where the program comes from and what builds it."""

    def program(self) -> Path:
        """Return the program. Raises MissingPeerError if it is not there."""
        named = os.environ.get(self.variable)
        found = self.found(named or self.executable) if named or self.executable else None
        if found is None:
            where = f"{self.variable}={named} is no executable" if named else f"nothing in {self.variable}"
            if not named and self.executable:
                where = f"{self.executable} is not on PATH, nor in {self.variable}"
            raise MissingPeerError(f"{where} ({self.source})")
        return found.resolve()

    def found(self, name: str) -> Path | None:
        """Return the program that a name stands for; None if there is none."""
        path = shutil.which(name)
        return None if path is None else Path(path)

    def environment(self, program: Path) -> Mapping[str, str]:
        """Return variables that the program needs besides those of this process."""
        return {}

    @abstractmethod
    def check(self, work: Work) -> None:
        """Raise UnfitWorkError if the simulator has no place for something in the work."""

    @abstractmethod
    def write(self, work: Work, folder: Path) -> Sequence[str]:
        """Write the simulator's files into a folder; return the command line's arguments."""

    @abstractmethod
    def read(self, work: Work, folder: Path, printed: str) -> tuple[int, Integers | None]:
        """Return a run's `end_ps` and `completion_ps`, as PeerRun has them.

        Raises RuntimeError unless every flow has ended.
        """

    def run(self, work: Work, folder: Path, limit_s: float = LIMIT_S) -> PeerRun:
        """Run the program on the work in a folder.

        Raises:
            MissingPeerError: it is not there.
            UnfitWorkError: it has no place for the work.
            RuntimeError, TimeoutError: it failed, left flows unfinished, or took longer than `limit_s`.
        """
        program = self.program()
        self.check(work)
        command = [str(program), *self.write(work, folder)]
        spent, printed = measured(command, folder, {**os.environ, **self.environment(program)}, limit_s)
        return PeerRun(spent, *self.read(work, folder, printed), printed)


def require_all_ended(work: Work, title: str, ended: int) -> None:
    """Raise RuntimeError unless as many flows ended as there are."""
    if ended != len(work.flows):
        raise RuntimeError(f"{work.title}: {ended} of {len(work.flows)} flows of {title} ended")
