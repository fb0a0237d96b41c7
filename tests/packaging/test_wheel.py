"""An installed Weft, away from its checkout, among files with the names of its packages."""

import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from weft.engine import _core

ROOT = Path(__file__).resolve().parents[2]
OWN_MODULES = (
    "cache.py",
    "compiler/__init__.py",
    "controller/__init__.py",
    "engine.py",
    "switch.py",
    "traffic.py",
)
PLUGIN_TEST = """
import numpy
import pytest
import weft


@pytest.mark.fabric(clock="virtual", planes=1, leaves=2, spines=1, hosts_per_leaf=1)
def test_an_all_reduce(fabric):
    run = fabric.run(weft.CollectiveRequest("allreduce", [numpy.ones(1024, numpy.float32)] * 2))
    assert run.result.ok
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the working tree. The engine that the tests use is up to date and not built again."""
    folder = tmp_path_factory.mktemp("wheel")
    engine = Path(_core.__file__)
    (folder / "lib" / "weft" / "engine").mkdir(parents=True)
    shutil.copy2(engine, folder / "lib" / "weft" / "engine" / engine.name)
    commands = ["build", "--build-lib", folder / "lib", "egg_info", "--egg-base", folder]
    commands += ["bdist_wheel", "--bdist-dir", folder / "bdist", "--dist-dir", folder]
    run(sys.executable, "setup.py", "--quiet", *commands, cwd=ROOT)
    (made,) = folder.glob("weft_fabric-*.whl")
    return made


def environment_in(folder: Path) -> Path:
    """Return the interpreter of a new environment; what Weft depends on comes from the environment of the tests."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    dependencies = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    (site_packages / "dependencies.pth").write_text("\n".join(dict.fromkeys(dependencies)), encoding="utf-8")
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel; what Weft depends on comes from the environment of the tests."""
    folder = tmp_path_factory.mktemp("environment")
    python = environment_in(folder)
    run(sys.executable, "-m", "pip", "--quiet", "--python", folder, "install", "--no-deps", wheel)
    return python


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder: its modules have the names of Weft's packages and raise when imported."""
    for name in OWN_MODULES:
        module = tmp_path / "work" / name
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(f"raise RuntimeError('the user\\'s {name} was imported')\n", encoding="utf-8")
    (tmp_path / "work" / "cache").mkdir()
    return tmp_path / "work"


def run(*command: object, **options: object) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, env=environment, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_wheel_holds_one_package(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"weft"}
    for shipped in (
        "p4/fabric.p4",
        "labs/01-allreduce/scenario.yaml",
        "labs/08-scale/README.md",
        "examples/plb.py",
    ):
        assert f"weft/shipped/{shipped}" in names
    for data in ("weft/traffic/flow_sizes/websearch.txt", "weft/compiler/include/v1model.p4"):
        assert data in names
    tracked = subprocess.run(
        ["git", "ls-files", "weft"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    assert sorted(set(tracked) - set(names)) == []


def test_a_wheels_engine_has_no_symbols(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (engine,) = [name for name in archive.namelist() if re.search(r"/_core\..*so$", name)]
        archive.extract(engine, tmp_path)
    sections = subprocess.run(
        ["readelf", "--section-headers", "--wide", tmp_path / engine], capture_output=True, text=True, check=True
    ).stdout
    assert ".dynsym" in sections
    assert not re.search(r"\.symtab|\.debug", sections)


def test_metadata_says_who_and_for_which_pythons(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(name).decode()
    assert "\nAuthor: The Weft developers\n" in metadata
    assert "\nRequires-Python: >=3.11\n" in metadata
    required = re.findall(r"^Requires-Dist: ([\w.-]+)(?![^\n]*extra ==)", metadata, re.MULTILINE)
    assert "click" in required
    assert "scikit-learn" not in required


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sdist")
    run(sys.executable, "setup.py", "--quiet", "egg_info", "--egg-base", folder, "sdist", "-d", folder, cwd=ROOT)
    (made,) = folder.glob("weft_fabric-*.tar.gz")
    return made


def test_a_source_distribution_has_what_a_build_needs_and_nothing_built(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    folders = ["engine", "weft", "labs", "p4", "examples", "setup.py", "pyproject.toml", "LICENSE"]
    tracked = subprocess.run(
        ["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    assert sorted(set(tracked) - names) == []
    assert not [name for name in names if name.endswith((".so", ".pyc")) or "/runs/" in name]


@pytest.mark.parametrize(
    ("compiler", "cause"),
    [
        ("/nowhere/g++", "/nowhere/g++ does not compile C++20"),
        ("g++ -nostdinc++", "g++ does not compile C++20"),
        ("g++ -DPy_PYTHON_H -include nowhere/Python.h", "there is no Python.h"),
    ],
)
def test_without_a_compiler_a_build_says_so_in_one_line(sdist: Path, tmp_path: Path, compiler: str, cause: str) -> None:
    run("tar", "--extract", "--file", sdist, "--directory", tmp_path)
    (source,) = tmp_path.iterdir()
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext"],
        cwd=source,
        env=os.environ | {"CC": compiler.replace("++", "cc", 1), "CXX": compiler},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == (
        f"error: weft-fabric needs a C++20 compiler, such as g++ 12, and Python's headers; {cause}. "
        "Debian, Ubuntu: apt install g++ python3-dev; Fedora: dnf install gcc-c++ python3-devel\n"
    )


@pytest.mark.parametrize("unity", ["0", "1"])
def test_bindings_alone_are_optimised_less_and_are_linked_last(sdist: Path, tmp_path: Path, unity: str) -> None:
    run("tar", "--extract", "--file", sdist, "--directory", tmp_path)
    (source,) = tmp_path.iterdir()
    compiler = tmp_path / "c++"
    compiler.write_text(
        f'#!/bin/bash\necho "$*" >>{tmp_path}/calls\nwhile (($#)); do [[ $1 != -o ]] || : >"$2"; shift; done\n'
    )
    compiler.chmod(0o755)
    environment = os.environ | {"CC": str(compiler), "CXX": str(compiler), "WEFT_UNITY": unity, "WEFT_BUILD_JOBS": "1"}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    *calls, link = (line for line in lines if "-fsyntax-only" not in line and not re.search("/lib(weft-|mrc)", line))
    levels = {unit: re.findall(r"-O\d", call)[-1] for call in calls for unit in re.findall(r" -c (\S+)", call)}
    bindings = {unit for unit in levels if "/python" in unit}
    assert {levels[unit] for unit in bindings} == {"-O1"}
    assert {levels[unit] for unit in levels.keys() - bindings} == {"-O3"}
    objects = re.findall(r"\S+/(?:engine|units)/\S+\.o(?= )", link)
    assert len(objects) == len(levels)
    assert ["/python" in each for each in objects] == sorted("/python" in each for each in objects)


@pytest.mark.slow
@pytest.mark.timeout(1800)  # it compiles the whole engine, with link-time optimisation
def test_a_source_distribution_builds_and_runs(sdist: Path, folder: Path, tmp_path: Path) -> None:
    """As for a user without a wheel: pip builds the engine from the archive alone, and lab 1 runs with it."""
    python = environment_in(tmp_path / "environment")
    pip = [sys.executable, "-m", "pip", "--quiet", "--python", tmp_path / "environment"]
    run(*pip, "install", "--no-deps", "--no-build-isolation", sdist, cwd=tmp_path)
    where = run(python, "-c", "from weft.engine import _core; print(_core.__file__)", cwd=folder).strip()
    assert Path(where).is_relative_to(tmp_path / "environment")
    arguments = ["run", "lab:01-allreduce", "--clock", "virtual", "--out", "result"]
    assert "none is missing" in run(python.parent / "weft", *arguments, cwd=folder)


@pytest.mark.slow
def test_an_installed_weft_runs_from_any_folder(python: Path, folder: Path) -> None:
    weft = python.parent / "weft"
    assert "lab:01-allreduce" in run(weft, "labs", cwd=folder)
    run(weft, "run", "lab:01-allreduce", "--clock", "virtual", "--out", "result", cwd=folder)
    run(weft, "report", "result", cwd=folder)
    assert "<svg" in (folder / "result" / "report.html").read_text(encoding="utf-8")
    assert "in-network" in run(weft, "collective", "allreduce", "--clock", "virtual", "--sizes", "64K", cwd=folder)
    run(weft, "labs", "copy", "10-failures", "mine", cwd=folder)
    run(weft, "topology", "draw", "mine/scenario.yaml", "-o", "fabric.svg", cwd=folder)
    program = run(python, "-c", "from weft.paths import FABRIC_P4; print(FABRIC_P4)", cwd=folder).strip()
    run(weft, "compile", program, "-o", "fabric.json", "--p4info", "fabric.txtpb", cwd=folder)
    run(weft, "new", "my-switch", cwd=folder)
    assert "none is missing" in run(weft, "run", "scenario.yaml", cwd=folder / "my-switch")


@pytest.mark.slow
def test_an_installed_switch_serves_a_program(python: Path, folder: Path) -> None:
    address = f"unix:{folder}/p4runtime"
    switch = subprocess.Popen(
        [python.parent / "weft", "switch", "--no-p4", "--", "--grpc-server-addr", address],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert switch.stdout is not None
        assert address in switch.stdout.readline()
    finally:
        switch.send_signal(signal.SIGINT)
        switch.wait()
    assert switch.returncode == 0


@pytest.mark.slow
def test_the_fixture_of_an_installed_weft(python: Path, folder: Path) -> None:
    (folder / "test_mine.py").write_text(PLUGIN_TEST, encoding="utf-8")
    assert "1 passed" in run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder)


@pytest.mark.slow
def test_the_workflow_for_users_tests_a_new_project(wheel: Path, python: Path, tmp_path: Path) -> None:
    """Each of its commands, in order; packages come from the environment of the tests instead of the Internet."""
    run(python.parent / "weft", "new", tmp_path / "mine")
    (tmp_path / "mine" / "test_mine.py").write_text(PLUGIN_TEST, encoding="utf-8")
    workflow = YAML(typ="safe").load((ROOT / "examples" / "ci" / "github.yml").read_text(encoding="utf-8"))
    commands = [step["run"] for step in workflow["jobs"]["test"]["steps"] if "run" in step]
    assert commands[0].startswith("python -m pip install")
    settings = {"WEFT": wheel, "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PATH": f"{python.parent}:{os.environ['PATH']}"}
    exports = "".join(f"export {name}='{value}'; " for name, value in settings.items())
    outputs = [run("bash", "-euc", f"{exports}{command}", cwd=tmp_path / "mine") for command in commands]
    assert "2 passed" in outputs[-1]
    assert list((tmp_path / "mine" / "coverage").iterdir())


@pytest.mark.parametrize("has_header", [True, False])
def test_libraries_of_rdma_programs_are_built_where_libibverbs_header_is(
    sdist: Path, tmp_path: Path, has_header: bool
) -> None:
    run("tar", "--extract", "--file", sdist, "--directory", tmp_path)
    (source,) = tmp_path.iterdir()
    compiler = tmp_path / "c++"
    # The engine's own probe names the language's version; that of the header does not.
    refuses = "" if has_header else 'if [[ "$*" == "-fsyntax-only"* ]]; then exit 1; fi\n'
    compiler.write_text(f'#!/bin/bash\n{refuses}while (($#)); do [[ $1 != -o ]] || : >"$2"; shift; done\n')
    compiler.chmod(0o755)
    environment = os.environ | {"CC": str(compiler), "CXX": str(compiler), "WEFT_BUILD_JOBS": "1"}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    built = sorted(path.name for path in (source / "weft" / "verbs").rglob("*.so"))
    assert ("libibverbs-dev" in done.stderr) is not has_header
    providers = [name for name in built if "rdmav" in name]
    others = ["libmrc.so", "libweft-preload.so"]
    others += ["libweft-virtual-time.so"] if platform.machine() == "x86_64" else []
    assert [name for name in built if name not in providers] == (others if has_header else [])
    assert len(providers) == (4 if has_header else 0)
    assert (source / "weft" / "verbs" / "include" / "mrc_ctl.h").exists() is has_header
