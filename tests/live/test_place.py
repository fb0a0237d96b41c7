"""Where `--web` serves the page."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.refusals import refused
from weft.cli import run_guarded, weft
from weft.errors import BadInputError
from weft.live import Place
from weft.paths import ROOT


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1", Place("127.0.0.1", 9465)),
        ("0", Place("127.0.0.1", 0)),
        ("8080", Place("127.0.0.1", 8080)),
        ("localhost:8080", Place("127.0.0.1", 8080)),
        ("10.1.2.3:80", Place("10.1.2.3", 80)),
        ("::1", Place("::1", 9465)),
        ("[::1]", Place("::1", 9465)),
        ("[::1]:8080", Place("::1", 8080)),
    ],
)
def test_a_place_is_a_port_an_address_or_both(text: str, place: Place) -> None:
    assert Place.of(text) == place


@pytest.mark.parametrize(
    "text",
    [
        "",
        "65536",
        "-1",
        "10.1.2.3:",
        "[::1]:",
        "[::1",
        "x:80",
        "1.2.3.4:x",
        "1.2.3.4:٣",
        "[::1]8",
        "a.example:80",
    ],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with refused(
        BadInputError,
        valid="a port up to 65535, an IP address, or both as 127.0.0.1:9465 or [::1]:9465",
        problem="is not a place to serve a page",
    ):
        Place.of(text)


def test_only_loopback_is_for_this_machine_alone() -> None:
    assert Place.of("[::1]:1").is_loopback
    assert Place.of("127.0.0.1").is_loopback
    assert not Place.of("0.0.0.0:1").is_loopback


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["run", "--web"], 4, "--web is for the real clock"),
        (["lab", "--clock", "virtual", "--web"], 4, "no prompt"),
        (["run", "--web", "nowhere"], 3, "--web 'nowhere': is not a place"),
        (["lab", "--web", "70000"], 3, "--web '70000': is not a place"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_anything_is_built(
    arguments: list[str], code: int, message: str, tmp_path: Path
) -> None:
    command, *options = arguments
    runner = CliRunner()
    with runner.isolation() as (_, err, _output):
        words = [command, str(ROOT / "labs/10-failures/scenario.yaml"), *options]
        assert run_guarded(lambda: weft.main(words, "weft", standalone_mode=False)) == code
        assert message in err.getvalue().decode()
