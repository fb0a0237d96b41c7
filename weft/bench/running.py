"""Runs a suite on a fabric and makes its report."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from weft.bench.identification import configuration_of, hosts_of, identification_of, topology_of
from weft.bench.measures import health_of
from weft.bench.model import BenchReport, Health, Measured, Status, TestReport
from weft.bench.procedure import BenchTest
from weft.bench.profile import Profile
from weft.bench.setup import NotApplicableError, Setup
from weft.bench.subject import Subject
from weft.bench.suites import Suite
from weft.bench.variants import OWN, Variant
from weft.errors import WeftError
from weft.topologies.drawings import to_svg
from weft.trials import InvalidTrialError, Procedure, Trial, TrialProgress, TrialRun, TrialRunner

_FLOWS = "flows"


class BrokenTestError(WeftError):
    """A test has a fault of its own."""


@dataclass
class _Watched:
    """A test under a variant; its trials' health, and the parameters in force in the first one."""

    test: BenchTest
    setup: Setup
    trials: int = 0
    health: Health = field(default_factory=Health)
    first: TrialRun | None = None

    @property
    def key(self) -> str:
        """Name of the procedure, for progress."""
        title = self.setup.variant.title
        return f"{self.test.section} {self.test.title}{f' ({title})' if title else ''}"

    def procedure(self) -> Procedure[Measured]:
        """Return the test's procedure; what it yields and gets is noted on the way."""
        try:
            inner = self.test.run(self.setup)
            trials = next(inner)
            while True:
                try:
                    runs: Sequence[TrialRun] = yield trials
                except InvalidTrialError as error:
                    trials = inner.throw(error)
                    continue
                self._note(trials, runs)
                trials = inner.send(runs)
        except StopIteration as end:
            found: Measured = end.value
            return found
        except (WeftError, GeneratorExit):
            raise
        except Exception as error:
            # A fault of one test must not take hours of others with it.
            raise BrokenTestError("".join(traceback.format_exception(error))) from error

    def _note(self, trials: Sequence[Trial], runs: Sequence[TrialRun]) -> None:
        self.trials += len(trials)
        self.health = self.health.together_with(health_of(runs))
        self.first = self.first or next((run for run in runs if run.has_results), None)

    def report(self, found: Measured | WeftError) -> TestReport:
        """Return the report of what the procedure has come to."""
        status, reason, measured = Status.MEASURED, "", Measured()
        if isinstance(found, Measured):
            measured = found
        elif isinstance(found, NotApplicableError | InvalidTrialError):
            status, reason = Status.NOT_APPLICABLE, str(found)
        else:
            status, reason = Status.FAILED, str(found)
        return TestReport(
            self.test.section,
            self.test.name,
            self.test.title,
            self.setup.variant.title,
            status,
            reason,
            self.trials,
            self.health,
            measured,
        )


def run_bench(
    suite: Suite,
    subject: Subject,
    directory: Path,
    *,
    profile: Profile = Profile.SMOKE,
    tests: Sequence[BenchTest] = (),
    variants: Sequence[Variant] = (Variant(),),
    workers: int | None = None,
    progress: TrialProgress | None = None,
) -> BenchReport:
    """Run tests of a suite on a fabric, write bench.json, and return the report.

    A trial that has finished in the directory before, by this version of Weft, is not run again.

    Args:
        suite: training or inference.
        subject: the fabric.
        directory: of the report and of all trials.
        profile: how much of the draft's procedure is run.
        tests: those to run, all by default.
        variants: transports and ways of balancing load.
        workers: trials at a time; by default as many as processors.
        progress: called as trials end.

    Raises:
        BadInputError: the directory is in use.
        EnvironmentLacksError: a file cannot be written.
    """
    folder = directory.resolve() / _FLOWS
    base = Setup(subject, subject, Variant(), profile, folder, subject.spec.options.seed)
    watched: dict[str, _Watched] = {}
    refused: dict[str, WeftError] = {}
    for test in tests or suite.tests:
        for variant in _variants_for(test, variants):
            try:
                each = _Watched(test, base.under(variant))
            except NotApplicableError as error:
                each = _Watched(test, replace(base, variant=variant))
                refused[each.key] = error
            watched[each.key] = each
    procedures = {key: each.procedure() for key, each in watched.items() if key not in refused}
    found = TrialRunner(directory, workers, progress).run(procedures) | refused
    firsts = {each.setup.variant: each.first for each in watched.values() if each.first is not None}
    report = BenchReport(
        suite=suite.name,
        draft=suite.draft,
        profile=str(profile),
        fabric=subject.name,
        identification=identification_of(subject),
        topology=topology_of(subject),
        drawing=to_svg(subject.fabric),
        configuration={variant.title: configuration_of(run) for variant, run in firsts.items()},
        hosts={variant.title: hosts_of(run) for variant, run in firsts.items()},
        made_by={"seed": str(base.seed), "tests": ", ".join(dict.fromkeys(t.section for t in tests or suite.tests))},
        tests=[each.report(found[key]) for key, each in watched.items()],
    )
    report.write(directory)
    return report


def _variants_for(test: BenchTest, variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants that differ for a test."""
    return list(
        dict.fromkeys(
            Variant(
                OWN if test.compares_transports else each.transport,
                OWN if test.compares_load_balancing else each.load_balancing,
            )
            for each in variants
        )
    )
