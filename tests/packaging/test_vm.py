"""The lab VM, the container and Soft-RoCE: what of them can be checked without any of the three."""

from __future__ import annotations

import getpass
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from weft.paths import ROOT
from weft.workbench import DEFAULT_PORT

VAGRANT = ROOT / "vagrant"
CONTAINERFILE = (VAGRANT / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
INSTRUCTIONS = [tuple(line.split(None, 1)) for line in CONTAINERFILE.splitlines() if line and not line.startswith("#")]


def of_container(name: str) -> list[str]:
    return [rest for instruction, rest in INSTRUCTIONS if instruction == name]


def script(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/bash", str(VAGRANT / name), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


def provisioned(commands: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run commands with the functions of provision.sh."""
    line = f"source {VAGRANT / 'provision.sh'}; {commands}"
    return subprocess.run(
        ["/bin/bash", "-c", line], capture_output=True, text=True, check=False, env=os.environ | environment
    )


@pytest.mark.skipif(shutil.which("ruby") is None, reason="ruby is not installed (apt install ruby)")
def test_the_vagrantfile_is_ruby() -> None:
    done = subprocess.run(["ruby", "-c", VAGRANT / "Vagrantfile"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_vm_opens_no_port_but_over_ssh() -> None:
    vagrantfile = (VAGRANT / "Vagrantfile").read_text(encoding="utf-8")
    assert '"-L", "127.0.0.1:#{jupyter_port}:127.0.0.1:8888"' in vagrantfile
    assert f'"-L", "127.0.0.1:#{{workbench_port}}:127.0.0.1:{DEFAULT_PORT}"' in vagrantfile
    assert not re.search(r"forwarded_port|public_network|private_network", vagrantfile)


def chosen(arguments: str, what: str, **environment: str) -> list[str]:
    """What provision.sh sets up with these arguments: `parts`, `packages` of apt or `extras` of setup.cfg."""
    done = provisioned(f'choose {arguments}; echo "${{{what}[@]}}"', **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_what_only_tests_need_is_not_set_up_without_them() -> None:
    assert chosen("", "parts") == []
    assert chosen("", "extras") == ["demo", "report"]
    assert not {"tshark", "shellcheck", "chromium", "prometheus", "valgrind"} & set(chosen("", "packages"))
    assert {"mininet", "g++", "python3-venv"} <= set(chosen("", "packages"))
    assert set(chosen("tests", "parts")) == {"tests", "browser", "mpi", "prometheus", "rdma", "shell", "valgrind"}
    assert set(chosen("tests", "extras")) == {"demo", "report", "dev", "sweep", "test"}
    assert {"tshark", "shellcheck"} <= set(chosen("tests", "packages"))


def test_single_parts_are_set_up_and_left_out() -> None:
    assert chosen("mpi notebooks", "parts") == ["mpi", "notebooks"]
    assert chosen("mpi notebooks", "extras") == ["demo", "report", "notebook"]
    without = {"WEFT_WITHOUT": "browser prometheus rdma shell valgrind"}
    assert chosen("tests", "parts", **without) == ["tests", "mpi"]
    assert chosen("prometheus tests", "parts", **without) == ["prometheus", "tests", "mpi"]
    done = provisioned("choose promtheus")
    valid = "(valid: mpi notebooks prometheus rdma references shell tests)"
    assert (done.returncode, done.stderr) == (2, f"provision: there is no part 'promtheus' {valid}\n")


def test_extras_stay_when_a_smaller_set_up_follows(tmp_path: Path) -> None:
    # Like a checkout: what it declares, and a .venv that says what is installed.
    for name in ("setup.cfg", "setup.py", "pyproject.toml", "vagrant"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / ".venv").mkdir()
    state = tmp_path / ".venv" / "weft-installed"
    asked = f'cd {tmp_path}; if lacks_packages; then echo "lacks ${{extras[*]}}"; else echo nothing; fi'
    sum_of_files = provisioned("sum_of_declarations").stdout.strip()
    for written, arguments, expected in (
        (None, "", "lacks demo report"),
        ("", "", "lacks demo report"),
        (f"{sum_of_files}\ndemo report\n", "", "nothing"),
        (f"{sum_of_files}\ndemo report\n", "notebooks", "lacks demo report notebook"),
        (f"{sum_of_files}\ndemo report dev sweep test\n", "", "nothing"),
        (f"{sum_of_files}\ndemo report dev sweep test\n", "tests", "nothing"),
        ("0123\ndemo report dev sweep test\n", "", "lacks demo report dev sweep test"),
    ):
        if written is not None:
            state.write_text(written)
        assert provisioned(f"choose {arguments}; {asked}").stdout.strip() == expected, (written, arguments)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with an engine to build, and an interpreter that notes its arguments in `built` and makes an engine."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "engine").mkdir()
    (tmp_path / "weft" / "engine").mkdir(parents=True)
    (tmp_path / "setup.py").touch()
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(
        f'#!/bin/bash\necho "$*" >>{tmp_path}/built\n[[ ! -e {tmp_path}/fails ]] || exit 1\n'
        f"touch {tmp_path}/weft/engine/_core.abi.so\n"
    )
    python.chmod(0o755)
    return tmp_path


def test_the_engine_is_built_where_its_sources_are_newer_or_it_is_deleted(checkout: Path) -> None:
    def builds() -> int:
        done = provisioned(f"cd {checkout}; start_engine; finish_engine")
        assert done.returncode == 0, done.stderr
        assert (checkout / "weft" / "engine" / "_core.abi.so").exists()
        return (checkout / "built").read_text().count("build_ext --inplace")

    assert [builds(), builds()] == [1, 1]
    (checkout / "engine" / "new.cpp").touch()
    assert [builds(), builds()] == [2, 2]
    (checkout / "weft" / "engine" / "_core.abi.so").unlink()
    assert [builds(), builds()] == [3, 3]


def test_every_target_that_uses_the_engine_asks_the_set_up_for_it(checkout: Path) -> None:
    """Make alone decides nothing: the three targets run provision.sh, also where .venv says that all is installed."""
    (checkout / "vagrant").mkdir()
    (checkout / "vagrant" / "provision.sh").write_text('#!/bin/sh\necho "set up: $*"\nexit 7\n')
    (checkout / "vagrant" / "provision.sh").chmod(0o755)
    for target, parts in (("setup", ""), ("demo", ""), ("test", "tests")):
        make = ["make", "--no-print-directory", "--file", ROOT / "Makefile", target]
        done = subprocess.run(make, cwd=checkout, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.strip()) == (2, f"set up: {parts}".strip()), target


def test_an_engine_that_was_not_built_to_its_end_is_built_again(checkout: Path) -> None:
    (checkout / "fails").touch()
    for builds in (1, 2):
        done = provisioned(f"cd {checkout}; start_engine; finish_engine")
        assert (done.returncode, "the engine could not be built" in done.stderr) == (1, True)
        assert (checkout / "built").read_text().count("\n") == builds


def test_the_build_ends_with_the_set_up(checkout: Path) -> None:
    python = checkout / ".venv" / "bin" / "python"
    python.write_text(f"#!/bin/bash\necho $$ >{checkout}/pid\nexec sleep 1000\n")
    waits = f"until [[ -s {checkout}/pid ]]; do read -rt 0.01 <> <(:) || true; done"
    done = provisioned(f"cd {checkout}; start_engine; {waits}; exit 4")
    assert done.returncode == 4
    pid = int((checkout / "pid").read_text())
    # Ended, or about to: the signal has been sent, and a zombie is no process that runs.
    state = Path(f"/proc/{pid}/stat")
    for _ in range(1000):
        if not state.exists() or state.read_text().split(")")[1].split()[0] == "Z":
            return
        subprocess.run(["true"], check=True)
    pytest.fail(f"process {pid} runs")


def test_requirements_are_those_of_setup_cfg() -> None:
    done = provisioned(f'cd {ROOT}; .venv/bin/python() {{ {sys.executable} "$@"; }}; requirements demo')
    asked = set(done.stdout.split())
    assert {"click>=8.4", "scikit-learn>=1.4", "plotly>=5.20"} <= asked, done.stderr
    assert not any(each.startswith(("pytest", "sphinx")) for each in asked)


def test_without_apt_the_set_up_says_what_is_missing(tmp_path: Path) -> None:
    for tool in ("bash", "cat", "dirname", "grep", "id"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    (tmp_path / "dpkg-query").write_text("#!/bin/bash\nexit 1\n")
    (tmp_path / "dpkg-query").chmod(0o755)
    done = provisioned("install_packages", PATH=str(tmp_path))
    assert done.returncode == 4
    systems = r"Debian 12 and 13, Ubuntu 24\.04 and 26\.04"
    assert re.search(rf"needs apt \({systems}\); missing: .*mininet", done.stderr)


@pytest.mark.parametrize("apt", ["true", "false"])
def test_the_service_of_prometheus_is_masked_before_it_is_installed(tmp_path: Path, apt: str) -> None:
    # Root's commands are carried out as they are, but for apt's; where apt fails the mask goes again.
    unit = tmp_path / "system" / "prometheus.service"
    as_root = f'[[ "$*" != *apt-get* ]] || {{ ls -l {unit}; echo "$*"; {apt}; return; }}; "$@"'
    without = 'command() { [[ "$2" != prometheus ]]; }'
    commands = f"as_root() {{ {as_root}; }} >&3; {without}; prometheus_unit={unit}; install_prometheus"
    done = provisioned(f"exec 3>{tmp_path / 'seen'}; {commands}")
    assert done.returncode == 0, done.stderr
    seen = (tmp_path / "seen").read_text()
    assert "prometheus.service -> /dev/null" in seen
    assert re.search(r"RUNLEVEL=1 .*apt-get install .*--no-install-recommends prometheus", seen)
    assert unit.is_symlink() == (apt == "true")
    assert ("could not be installed" in done.stdout) == (apt == "false")


@pytest.fixture
def jupyter(tmp_path: Path) -> tuple[Path, Path, list[str]]:
    """Home, file system and output of two runs of the service's set-up for a user who has notebooks already."""
    home = tmp_path / "home"
    (home / "labs").mkdir(parents=True)
    (home / "labs" / "mine.ipynb").write_text("{}")
    runs = [
        script("jupyter.sh", HOME=str(home), WEFT_DESTDIR=str(tmp_path / "root"), WEFT_JUPYTER_PORT="9999")
        for _ in range(2)
    ]
    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr
    return home, tmp_path / "root", [run.stdout for run in runs]


def test_jupyter_asks_for_a_token_that_only_its_user_reads(jupyter: tuple[Path, Path, list[str]]) -> None:
    home, files, printed = jupyter
    token_file = home / ".config" / "weft" / "jupyter-token"
    token = token_file.read_text().strip()
    assert re.fullmatch(r"[0-9a-f]{48}", token)
    assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(token_file.parent.stat().st_mode) == 0o700
    for text in printed:
        assert f"http://127.0.0.1:9999/lab?token={token}" in text
    written = [path.read_text() for path in files.rglob("*") if path.is_file()]
    assert len(written) == 2
    assert not any(token in text for text in written)


def test_jupyter_listens_on_loopback_and_keeps_what_is_there(jupyter: tuple[Path, Path, list[str]]) -> None:
    home, files, _ = jupyter
    settings = home / ".config" / "weft" / "jupyter_server_config.py"
    text = settings.read_text()
    compile(text, str(settings), "exec")
    assert 'c.ServerApp.ip = "127.0.0.1"' in text
    assert "c.ServerApp.port_retries = 0" in text
    service = (files / "etc/systemd/system/weft-jupyter.service").read_text()
    assert f"--config={settings}" in service
    assert f"User={getpass.getuser()}\n" in service
    assert [path.name for path in (home / "labs").iterdir()] == ["mine.ipynb"]
    greeting = files / "etc/profile.d/weft.sh"
    done = subprocess.run(["sh", "-c", f"PS1=x; . {greeting}"], capture_output=True, text=True, check=True)
    assert "http://127.0.0.1:9999/lab?token=" in done.stdout


def test_notebooks_that_an_interruption_left_half_made_are_made_anew(tmp_path: Path) -> None:
    pytest.importorskip("nbformat")
    (tmp_path / "labs.part").mkdir()
    (tmp_path / "labs.part" / "01-allreduce.ipynb").write_text("{")
    done = script("jupyter.sh", HOME=str(tmp_path), WEFT_DESTDIR=str(tmp_path / "root"))
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "labs.part").exists()
    assert json.loads((tmp_path / "labs" / "01-allreduce.ipynb").read_text())["cells"]


@pytest.mark.parametrize("port", ["80; rm", "0", "65536", "010"])
def test_jupyter_refuses_what_is_no_port(tmp_path: Path, port: str) -> None:
    done = script("jupyter.sh", HOME=str(tmp_path), WEFT_DESTDIR=str(tmp_path), WEFT_JUPYTER_PORT=port)
    assert (done.returncode, f"is a port, not '{port}' (valid: 1 to 65535)" in done.stderr) == (2, True)


def test_the_container_has_a_fixed_base_and_no_root_by_default() -> None:
    # Podman without a list of registries refuses a name without one, and asks where there are several.
    assert of_container("FROM") == ["docker.io/library/debian:12-slim"]
    assert of_container("USER")[-1] == "weft"
    known = {"FROM", "ARG", "COPY", "WORKDIR", "RUN", "ENV", "USER", "CMD"}
    assert not {name for name, _ in INSTRUCTIONS} - known
    (run,) = of_container("RUN")
    assert "rm -rf /var/lib/apt/lists/*" in run
    (copied,) = of_container("COPY")
    (path,) = of_container("ENV")
    assert copied == f". {of_container('WORKDIR')[0]}"
    assert path.startswith(f"PATH={of_container('WORKDIR')[0]}/.venv/bin:")


def test_the_containers_commands_are_those_of_the_set_up(tmp_path: Path) -> None:
    (run,) = of_container("RUN")
    checked = subprocess.run(["sh", "-n", "-c", run], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    for notebooks, parts in (("no", "mpi prometheus"), ("yes", "mpi prometheus notebooks")):
        folder = tmp_path / notebooks
        (folder / "vagrant").mkdir(parents=True)
        (folder / "vagrant" / "provision.sh").write_text('#!/bin/sh\necho "$*"\nexit 7\n')
        (folder / "vagrant" / "provision.sh").chmod(0o755)
        environment = os.environ | {"WEFT_NOTEBOOKS": notebooks}
        done = subprocess.run(
            ["sh", "-c", run], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout) == (7, f"{parts}\n")
        assert provisioned(f"choose {parts}").returncode == 0
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        assert not (ROOT / "vagrant" / "provision.sh").match(line)


def test_soft_roce_prints_its_commands() -> None:
    done = script("soft-roce.sh", "--dry-run", "h3", "h7", WEFT="weft")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "'modprobe' 'rdma_rxe'",
        "'modprobe' 'rdma_ucm'",
        "'weft' 'exec' '--kernel-devices' 'h3' 'rdma link add rxe_h3 type rxe netdev h3-eth0'",
        "'weft' 'exec' '--kernel-devices' 'h7' 'rdma link add rxe_h7 type rxe netdev h7-eth0'",
        "'weft' 'exec' '--kernel-devices' 'h3' 'rping -s -C 10 -v' &",
        "'weft' 'exec' '--kernel-devices' 'h7' 'rping -c -C 10 -v -a h3'",
        "'weft' 'exec' '--kernel-devices' 'h3' 'ib_send_bw -F -m 1024 -s 65536 -n 200 --report_gbits -d rxe_h3' &",
        "'weft' 'exec' '--kernel-devices' 'h7' 'ib_send_bw -F -m 1024 -s 65536 -n 200 --report_gbits -d rxe_h7 h3'",
        "'weft' 'exec' '--kernel-devices' 'h3' 'ib_write_bw -F -m 1024 -s 65536 -n 200 --report_gbits -d rxe_h3' &",
        "'weft' 'exec' '--kernel-devices' 'h7' 'ib_write_bw -F -m 1024 -s 65536 -n 200 --report_gbits -d rxe_h7 h3'",
        "'weft' 'exec' '--kernel-devices' 'h3' 'rdma link delete rxe_h3'",
        "'weft' 'exec' '--kernel-devices' 'h7' 'rdma link delete rxe_h7'",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--fast"],
            "unknown option '--fast' (valid: --dry-run, --first-namespace, --pyverbs, --install, --help)",
        ),
        (["h0; reboot"], "'h0; reboot' is no host"),
        (["h1", "h1"], "h1 cannot be server and client"),
    ],
)
def test_soft_roce_refuses_what_it_does_not_know(arguments: list[str], message: str) -> None:
    done = script("soft-roce.sh", *arguments)
    assert (done.returncode, message in done.stderr) == (2, True)


def test_soft_roce_says_what_is_missing(tmp_path: Path) -> None:
    for tool in ("bash", "dirname"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    done = script("soft-roce.sh", PATH=str(tmp_path))
    assert (done.returncode, "there is no modprobe: apt install kmod" in done.stderr) == (4, True)
    for tool in ("modprobe", "rdma", "rping", "ib_write_bw", "ss", "tc", "id", "uname"):
        (tmp_path / tool).write_text(
            "#!/bin/bash\ncase ${0##*/} in modprobe) exit 1;; id) echo 0;; uname) echo 6.1.0;; esac\n"
        )
        (tmp_path / tool).chmod(0o755)
    done = script("soft-roce.sh", PATH=str(tmp_path))
    assert (done.returncode, "kernel 6.1.0 has no module rdma_rxe" in done.stderr) == (4, True)


def test_soft_roce_runs_the_parameter_server_of_lab_21() -> None:
    done = script("soft-roce.sh", "--dry-run", "--pyverbs", WEFT="weft")
    assert done.returncode == 0, done.stderr
    program = f"/usr/bin/python3 -u '{ROOT}'/labs/21-rdma-programming/pyverbs_server.py"
    serve, work = (line.replace("'\\''", "'") for line in done.stdout.splitlines()[4:6])
    assert serve == f"'weft' 'exec' '--kernel-devices' 'h0' '{program} serve --device rxe_h0' &"
    assert work == f"'weft' 'exec' '--kernel-devices' 'h1' '{program} work h0 --device rxe_h1'"
    assert done.stdout.splitlines()[6:] == [
        "'weft' 'exec' '--kernel-devices' 'h0' 'rdma link delete rxe_h0'",
        "'weft' 'exec' '--kernel-devices' 'h1' 'rdma link delete rxe_h1'",
    ]


def test_soft_roce_installs_what_it_needs() -> None:
    update, line = script("soft-roce.sh", "--dry-run", "--install").stdout.splitlines()
    assert update == "'apt-get' 'update' '-qq'"
    assert "apt-get" in line
    for package in ("rdma-core", "ibverbs-utils", "perftest", "python3-pyverbs", "rdmacm-utils"):
        assert f"'{package}'" in line


def test_soft_roce_needs_a_lab(tmp_path: Path) -> None:
    for tool in ("bash", "dirname"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    for tool in ("modprobe", "rdma", "rping", "ib_write_bw", "ss", "tc", "id"):
        (tmp_path / tool).write_text("#!/bin/bash\n[[ ${0##*/} != id ]] || echo 0\n")
        (tmp_path / tool).chmod(0o755)
    (tmp_path / "weft").write_text("#!/bin/bash\nexit 4\n")
    (tmp_path / "weft").chmod(0o755)
    done = script("soft-roce.sh", PATH=str(tmp_path), WEFT=str(tmp_path / "weft"))
    assert (done.returncode, done.stderr.count("h0 is no host of a running lab")) == (4, 1)


def test_soft_roce_notices_a_kernel_that_does_not_listen_in_the_hosts_namespace(tmp_path: Path) -> None:
    for tool in ("bash", "dirname"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or tool)
    for tool in ("modprobe", "rdma", "rping", "ib_write_bw", "ss", "tc", "id", "uname"):
        (tmp_path / tool).write_text("#!/bin/bash\n[[ ${0##*/} != id ]] || echo 0\n")
        (tmp_path / tool).chmod(0o755)
    (tmp_path / "weft").write_text(f'#!/bin/bash\necho "$*" >>{tmp_path}/calls\n')
    (tmp_path / "weft").chmod(0o755)
    done = script("soft-roce.sh", PATH=str(tmp_path), WEFT=str(tmp_path / "weft"))
    assert (done.returncode, "does not listen in the network namespace of h0" in done.stderr) == (4, True)
    assert (tmp_path / "calls").read_text().splitlines()[-1] == "exec --kernel-devices h0 rdma link delete rxe_h0"


def in_a_lab_vm(folder: Path, rping: str) -> subprocess.CompletedProcess[str]:
    """Run soft-roce.sh --first-namespace on a machine of fakes that write their commands to FOLDER/calls."""
    for tool in ("bash", "grep", "sed", "sleep", "sh", "timeout"):
        (folder / tool).symlink_to(shutil.which(tool) or tool)
    said = f'#!/bin/bash\necho "${{0##*/}} $*" >>{folder}/calls\n'
    fakes = {
        # The server's side waits, as one that nobody connects to.
        "rping": f'[[ "$*" != -s* ]] || exec sleep 60\n{rping}',
        "rdma": '[[ "$*" != "resource show cm_id" ]] || echo "link rxe_h0 state LISTEN comm rping"',
        "ip": '[[ "$*" != "rule delete"* ]]',
        "id": "echo 0",
        "readlink": "echo net:[1]",
        "weft": "case $4 in cd*) echo 10.0.0.1 02:00:00:00:00:01 1500;; ping*) echo 02:01:00:00:00:00;; esac",
    }
    for tool in ("modprobe", "ib_write_bw", "ss", "tc", "uname", "dirname", *fakes):
        (folder / tool).write_text(said + fakes.get(tool, "") + "\n")
        (folder / tool).chmod(0o755)
    environment = {"PATH": str(folder), "WEFT": str(folder / "weft"), "WEFT_DESTDIR": str(folder)}
    return script("soft-roce.sh", "--first-namespace", **environment)


def changes(folder: Path) -> list[str]:
    calls = (folder / "calls").read_text().splitlines()
    return [call for call in calls if re.match(r"ip |tc |rdma link|weft exec --kernel-devices h\d (ip link|tc)", call)]


def test_soft_roce_changes_the_machines_own_network_in_a_lab_vm_only(tmp_path: Path) -> None:
    done = in_a_lab_vm(tmp_path, "true")
    assert (done.returncode, f"there is no {tmp_path}/etc/weft/lab-vm" in done.stderr) == (4, True)
    assert changes(tmp_path) == []


def test_soft_roce_gives_the_first_namespace_back_when_a_program_fails(tmp_path: Path) -> None:
    (tmp_path / "etc" / "weft").mkdir(parents=True)
    (tmp_path / "etc" / "weft" / "lab-vm").touch()
    done = in_a_lab_vm(tmp_path, "exit 7")
    assert done.returncode == 7, done.stderr
    made = [call for call in changes(tmp_path) if "add" in call.split() and call.startswith(("ip", "rdma"))]
    assert [call.split()[1] for call in made] == ["address", "route", "rule", "route", "rule", "link"] * 2
    assert changes(tmp_path)[-6:] == [
        "ip link delete roce-h0",
        "ip link delete roce-h1",
        "ip rule delete preference 4790 lookup 4790",
        "ip rule delete preference 4791 lookup 4791",
        "weft exec --kernel-devices h0 tc qdisc delete dev h0-eth0 clsact",
        "weft exec --kernel-devices h1 tc qdisc delete dev h1-eth0 clsact",
    ]


def test_the_lab_vm_says_that_it_is_one() -> None:
    assert "/etc/weft/lab-vm" in (VAGRANT / "Vagrantfile").read_text(encoding="utf-8")
