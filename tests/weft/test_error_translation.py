"""Errors of lower layers are reported without a traceback, with an exit code that says whose fault they were."""

import click
import pytest

from weft.cli import run_guarded, weft
from weft.controller.errors import (
    JobError,
    PipelineError,
    RequestRefusedError,
    SettingError,
    SwitchUnavailableError,
)
from weft.error_translation import raised_as_weft_errors
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError, WeftError
from weft.topologies import TopologyError
from weft.traffic.prepared_runs import RunError


def fail_with(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (TopologyError("unknown host 'h9'"), BadInputError),
        (SettingError("kmax_bytes=1"), BadInputError),
        (JobError("job 1 wants 9999 slots"), BadInputError),
        (PipelineError("no table 'ecmp'"), BadInputError),
        (RequestRefusedError("p0l0: unknown action"), BadInputError),
        (SwitchUnavailableError("p0l0 does not answer"), CheckFailedError),
        (RunError("run 1 did not finish"), CheckFailedError),
    ],
)
def test_errors_of_lower_packages_keep_their_message(error, raised):
    with pytest.raises(raised, match=str(error)), raised_as_weft_errors():
        fail_with(error)


def test_a_fault_of_the_program_itself_is_not_hidden():
    with pytest.raises(ZeroDivisionError), raised_as_weft_errors():
        fail_with(ZeroDivisionError())


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (WeftError("x"), 1, "weft: x"),
        (CheckFailedError("x"), 1, "weft: x"),
        (click.UsageError("x"), 2, "weft: x"),
        (BadInputError("x"), 3, "weft: x"),
        (EnvironmentLacksError("x"), 4, "weft: x"),
        (PermissionError(13, "Permission denied", "/out"), 4, "weft: /out: Permission denied"),
        (OSError(28, "No space left on device"), 4, "weft: No space left on device"),
        (MemoryError(), 4, "weft: there is not enough memory"),
        (MemoryError("Unable to allocate 1 TiB"), 4, "weft: there is not enough memory: Unable to allocate 1 TiB"),
        (click.Abort(), 130, "weft: interrupted"),
    ],
)
def test_exit_codes(capsys, error, code, message):
    assert run_guarded(lambda: fail_with(error)) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("result", "code"), [(None, 0), (0, 0), (1, 1)])
def test_a_commands_result_is_its_exit_code(result, code):
    assert run_guarded(lambda: result) == code


def test_an_unknown_command_names_the_nearest(capsys):
    assert run_guarded(lambda: weft.main(args=["colective"], standalone_mode=False)) == 2
    assert "did you mean 'collective'?" in capsys.readouterr().err


def test_an_error_that_quotes_a_file_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    def refused() -> None:
        raise BadInputError("mine.p4:1: \x1b]0;owned\x07 is unknown\n\t^~~\r\u202e")

    assert run_guarded(refused) == 3
    said = "weft: mine.p4:1: \\x1b]0;owned\\x07 is unknown\n\t^~~\\r\\u202e\n"
    assert capsys.readouterr().err == said
