"""The libraries that RDMA programs load: what they need, and how programs are told of them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from weft.verbs import libraries

BUILT = sorted(libraries.LIBRARY_DIRECTORY.glob("*.so"))
needs_libraries = pytest.mark.skipif(not BUILT, reason="built without libibverbs-dev")


@needs_libraries
@pytest.mark.skipif(shutil.which("nm") is None, reason="needs nm, of binutils")
@pytest.mark.parametrize("library", BUILT, ids=lambda path: path.name)
def test_a_library_needs_no_more_than_the_c_library_and_libibverbs(library: Path) -> None:
    """A program that loads it may be written in C."""
    listed = subprocess.run(["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True)
    for symbol in (line.split()[-1] for line in listed.stdout.splitlines()):
        assert "@GLIBC_" in symbol or re.match(r"(_?verbs_|ibv_|_ITM_|__gmon_start__)", symbol), symbol
    needed = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    assert "libstdc++" not in needed


@needs_libraries
def test_each_provider_registers_with_the_library_that_its_name_is_for() -> None:
    providers = [path for path in BUILT if "rdmav" in path.name]
    assert len(providers) > 1
    for provider in providers:
        number = re.sub(r"\D", "", provider.name)
        named = set(re.findall(rb"verbs_register_driver_(\d+)", provider.read_bytes()))
        assert named == {number.encode()}


@needs_libraries
@pytest.mark.skipif(libraries.libibverbs() is None, reason="libibverbs1 is not installed")
def test_the_distributions_library_has_a_provider() -> None:
    assert libraries.missing_because() == ""


def test_lists_of_the_user_stay() -> None:
    found = libraries.variables("/run/h0", {"LD_PRELOAD": "/a.so /b.so", "IBV_DRIVERS": "/c"})
    assert found["LD_PRELOAD"].split(":") == [str(libraries.PRELOAD), "/a.so", "/b.so"]
    assert found["IBV_DRIVERS"].split(":")[1:] == ["/c"]
    assert found["WEFT_VERBS_SOCKET"] == "/run/h0"
    # In a host's shell, say, which has them already.
    assert libraries.variables("/run/h0", found) == found


def test_the_older_name_of_a_list_counts_where_it_is_set() -> None:
    """libibverbs/dynamic_driver.c does not look at IBV_DRIVERS then."""
    found = libraries.variables("/run/h0", {"RDMAV_DRIVERS": "mlx5"})
    assert found["RDMAV_DRIVERS"].split(":")[1:] == ["mlx5"]
    assert "IBV_DRIVERS" not in found


def test_why_there_is_no_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "PRELOAD", tmp_path / "libweft-preload.so")
    assert "libibverbs-dev" in libraries.missing_because()
    libraries.PRELOAD.touch()
    monkeypatch.setattr(libraries, "LIBRARY_DIRECTORY", tmp_path)
    monkeypatch.setattr(libraries, "_PROVIDER", tmp_path / "libweft")
    monkeypatch.setattr(libraries, "libibverbs", lambda: None)
    assert "apt install libibverbs1" in libraries.missing_because()
    own = tmp_path / "libibverbs.so.1"
    own.write_bytes(b"\x7fELF\0IBVERBS_1.1\0IBVERBS_PRIVATE_35\0")
    monkeypatch.setattr(libraries, "libibverbs", lambda: own)
    (tmp_path / "libweft-rdmav34.so").touch()
    assert "private ABI 35" in libraries.missing_because()
    (tmp_path / "libweft-rdmav35.so").touch()
    assert libraries.missing_because() == ""
    monkeypatch.setattr(libraries, "LIBRARY_DIRECTORY", Path("/home/a b/weft"))
    assert "no space" in libraries.missing_because()


@pytest.mark.parametrize(("name", "uses"), [("ibv_devices", True), ("rping", True), ("true", False)])
def test_programs_that_look_for_a_device_are_known(name: str, uses: bool) -> None:
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed (apt install ibverbs-utils rdmacm-utils)")
    assert libraries.uses_verbs(Path(path)) is uses


def test_a_script_is_no_program_that_looks_for_a_device(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n# libibverbs.so\n")
    assert not libraries.uses_verbs(tmp_path / "script")
    assert not libraries.uses_verbs(tmp_path / "missing")
