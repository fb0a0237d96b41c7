"""Every option of simple_switch_grpc is taken: it works, is ignored with a warning, or is refused with the reason."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from weft.switch.cli import bmv2_options
from weft.switch.cli.command import TARGET_OPTIONS, switch

ROOT = Path(__file__).parents[2]
NOWHERE = ["-i", "1@no-such-if0", "--", "--grpc-server-addr", "127.0.0.1:0"]
"""Gets as far as opening the interface, which fails with code 4: every option before was taken."""


def _names(parameters: list[click.Parameter]) -> set[str]:
    return {name.lstrip("-") for parameter in parameters for name in parameter.opts if name.startswith("--")}


@pytest.mark.reference
@pytest.mark.skipif(shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on PATH")
def test_no_option_of_the_reference_is_missing() -> None:
    done = subprocess.run(["simple_switch_grpc", "--help"], capture_output=True, text=True, check=False)
    general, target = (done.stdout + done.stderr).split("Target options:")
    option = re.compile(r"^  (?:-\w \[ )?--([a-z0-9-]+)", re.MULTILINE)
    assert set(option.findall(general)) - {"help"} <= _names(switch.params)
    wanted = set(option.findall(target))
    assert wanted
    assert wanted <= _names(TARGET_OPTIONS)


@pytest.mark.parametrize("option", bmv2_options.GENERAL + bmv2_options.TARGET, ids=lambda each: each.name)
def test_options_without_effect_are_reported(option: bmv2_options.ForeignOption) -> None:
    given = [f"--{option.name}", *(["7"] if option.argument else [])]
    result = CliRunner().invoke(switch, ["--no-p4", *given, *NOWHERE])
    assert f"--{option.name}" in result.output
    assert option.reason in result.output
    assert result.exit_code == (2 if option.refused else 4), result.output


def test_target_options_are_taken_behind_the_dashes_too() -> None:
    result = CliRunner().invoke(switch, ["--no-p4", "-i", "1@no-such-if0", "--", "--load-modules", "x.so"])
    assert result.exit_code == 2
    assert "extern types from shared objects are not supported" in result.output


def test_a_program_beside_no_p4_is_left_alone_as_bmv2_does() -> None:
    result = CliRunner().invoke(switch, ["--no-p4", "x.json", *NOWHERE])
    assert result.exit_code == 4
    assert "x.json is not loaded, because of --no-p4" in result.output


def test_more_interfaces_than_max_port_count_are_refused() -> None:
    result = CliRunner().invoke(switch, ["--no-p4", "--max-port-count", "1", "-i", "1@a", "-i", "2@b"])
    assert result.exit_code == 2
    assert "2 interfaces, but --max-port-count 1" in result.output


def test_the_json_version_is_printed() -> None:
    result = CliRunner().invoke(switch, ["--json-version"])
    assert result.exit_code == 0
    assert re.fullmatch(r"2\.\d+\n", result.output)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--grpc-server-cert", "x.pem"], "certificates and keys need --grpc-server-ssl"),
        (
            ["--grpc-server-ssl", "--grpc-server-cert", "x.pem"],
            "needs --grpc-server-cert and --grpc-server-key",
        ),
    ],
)
def test_incomplete_tls_options_are_refused(options: list[str], message: str) -> None:
    result = CliRunner().invoke(switch, ["--no-p4", "--", *options])
    assert result.exit_code == 2
    assert message in result.output


def test_certificates_that_cannot_be_read_end_the_start() -> None:
    files = ["--grpc-server-cert", "/nowhere.pem", "--grpc-server-key", "/nowhere.key"]
    result = CliRunner().invoke(switch, ["--no-p4", "--", "--grpc-server-ssl", *files])
    assert result.exit_code == 3
    assert "certificate /nowhere.pem" in result.output


def test_trees_and_a_log_of_every_packet_exclude_each_other() -> None:
    result = CliRunner().invoke(switch, ["--no-p4", "--log-console", "--trace", "2"])
    assert result.exit_code == 2
    assert "--trace: the log shows every packet already" in result.output


def test_captures_without_shims_need_captures() -> None:
    result = CliRunner().invoke(switch, ["--no-p4", "--pcap-without-shims"])
    assert result.exit_code == 2
    assert "--pcap-without-shims: there are no captures without --pcap" in result.output


@pytest.mark.parametrize("option", ["--trace", "--pcap"])
def test_a_program_behind_an_option_is_not_its_value(option: str, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)  # where captures go
    result = CliRunner().invoke(switch, [option, "no-such.json", "-i", "1@lo", "--", *NOWHERE[3:]])
    assert result.exit_code == 3, result.output
    assert "no-such.json: No such file or directory" in result.output


def test_a_name_of_the_binary_holds_grpc() -> None:
    """p4lang's tutorials start P4Runtime only on switches whose path holds it."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    scripts = dict(line.split(" = ") for line in setup["options.entry_points"]["console_scripts"].strip().splitlines())
    assert scripts["weft-switch-grpc"] == scripts["weft-switch"] == "weft.thrift.commands:switch"
