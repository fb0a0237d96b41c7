"""Procedures of trials: what they get, what is run once, what goes on after an interruption."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from weft.errors import BadInputError, WeftError
from weft.trials import InvalidTrialError, Procedure, Trial, TrialFailedError, TrialRun, TrialRunner

FABRIC = {"planes": 1, "leaves": 2, "spines": 1, "hosts_per_leaf": 1, "host_rate": "100Gb/s"}


def scenario(size: str, **keys: Any) -> Trial:
    return Trial(
        f"{size} of data",
        {"name": "trial", "fabric": FABRIC, "traffic": [{"permutation": size, "data": "lengths"}], **keys},
    )


class Seen:
    """The trials that were run, by procedure."""

    def __init__(self) -> None:
        self.run: list[tuple[str, str]] = []
        self.errors: dict[str, str] = {}

    def begin(self, procedures: Sequence[str]) -> None:
        pass

    def planned(self, procedure: str, trials: int, left: int) -> None:
        pass

    def ended(self, procedure: str, run: TrialRun) -> None:
        self.run.append((procedure, run.trial.label))

    def done(self, procedure: str, error: WeftError | None) -> None:
        self.errors[procedure] = str(error or "")


def doubling(times: int) -> Procedure[list[int]]:
    """Bytes of trials, each of which has twice the size that the results of the one before have."""
    size, found = 4096, []
    for _ in range(times):
        (run,) = yield [scenario(f"{size}B")]
        found.append(run.results_of("flows")[0].bytes_delivered // 2)
        assert run.flows["size_bytes"].tolist() == [size, size]
        size = 2 * found[-1]
    return found


def test_a_trial_may_depend_on_the_one_before_and_is_not_run_again(tmp_path: Path) -> None:
    seen = Seen()
    expected = {"a": [4096, 8192], "b": [4096]}
    assert TrialRunner(tmp_path, 2, seen).run({"a": doubling(2), "b": doubling(1)}) == expected
    # Both procedures wait for the run of the trial that they share.
    assert sorted(seen.run) == [("a", "4096B of data"), ("a", "8192B of data"), ("b", "4096B of data")]
    assert len(list((tmp_path / "points").iterdir())) == 2
    again = Seen()
    assert TrialRunner(tmp_path, 1, again).run({"a": doubling(2), "b": doubling(1)}) == expected
    assert again.run == []


def test_an_invalid_trial_is_the_procedures_matter(tmp_path: Path) -> None:
    def handles() -> Procedure[str]:
        try:
            yield [scenario("4KiB", fabric={**FABRIC, "planes": 0})]
        except InvalidTrialError as error:
            (run,) = yield [scenario("4KiB")]
            return f"{error.place} {run.error}"
        return "was valid"

    def does_not() -> Procedure[str]:
        yield [scenario("4KiB", colour="red")]
        return "was valid"

    found = TrialRunner(tmp_path, 1).run({"handles": handles(), "does not": does_not()})
    assert found["handles"] == "4KiB of data: fabric.planes "
    assert isinstance(found["does not"], InvalidTrialError)
    assert "colour" in str(found["does not"])


def test_a_failed_trial_has_no_results_and_runs_again(tmp_path: Path) -> None:
    trial = scenario("4KiB", faults={"loss": 0.99}, transport={"retransmission_timeout": "10us"})

    def procedure() -> Procedure[str]:
        (run,) = yield [trial]
        assert run.error
        return str(run.results.ok)

    for _ in range(2):
        seen = Seen()
        found = TrialRunner(tmp_path, 1, seen).run({"it": procedure()})
        assert isinstance(found["it"], TrialFailedError)
        assert str(found["it"]).startswith("4KiB of data: ")
        assert len(seen.run) == 1
        assert seen.errors["it"] == str(found["it"])


def test_a_directory_serves_one_runner_at_a_time(tmp_path: Path) -> None:
    def procedure() -> Procedure[None]:
        TrialRunner(tmp_path, 1).run({"inner": doubling(1)})
        yield []

    found = TrialRunner(tmp_path, 1).run({"outer": procedure()})
    assert isinstance(found["outer"], BadInputError)


@pytest.mark.parametrize("workers", [0, -1])
def test_there_is_a_worker(tmp_path: Path, workers: int) -> None:
    with pytest.raises(BadInputError):
        TrialRunner(tmp_path, workers)
