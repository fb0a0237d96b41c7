"""PyTorch over a fabric: the same results as over gloo, scripts that know nothing of Weft, clear errors.

PyTorch is no part of the tests' set-up: `.venv/bin/pip install torch`, from https://download.pytorch.org/whl/cpu.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from weft.paths import ROOT

pytest.importorskip("torch.distributed", reason="PyTorch is not installed (the extra `torch`)")
import torch

from weft.torch import tensors
from weft.torch.settings import Settings

RANKS = 4
HERE = Path(__file__).parent
pytestmark = pytest.mark.timeout(600)


def torchrun(
    script: Path, *arguments: str, ranks: int = RANKS, options: tuple[str, ...] = (), **environment: str
) -> tuple[int, str, str]:
    """Run a script by torchrun; return its exit code and what it printed."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    command += [*options, str(script)]
    own = {"OMP_NUM_THREADS": "1", "WEFT_SCENARIO": str(ROOT / "examples" / "torch_fabric.yaml")}
    # Registered as an installed Weft is, by the entry point, or, beside one of another tree, by this path.
    done = subprocess.run(
        [*command, *arguments],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | own | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def losses(printed: str) -> list[float]:
    return [float(each) for each in re.findall(r"loss ([\d.]+)", printed)]


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ring", "in-network"])
def test_every_collective_gives_what_gloo_gives(tmp_path: Path, algorithm: str) -> None:
    code, _, errors = torchrun(HERE / "collectives_of_rank.py", str(tmp_path), WEFT_ALGORITHM=algorithm)
    assert code == 0, errors
    found = [json.loads((tmp_path / f"rank{rank}.json").read_text()) for rank in range(RANKS)]
    for rank, own in enumerate(found):
        results = own["results"]
        for name in ("float32", "bfloat16", "int64", "int16"):
            assert results[f"reduce_scatter_tensor torch.{name}"] == [8.0 * rank, 8.0 * rank + 4]
        assert results["reduce_scatter"] == [3.0 + rank] * 2
        averages = {name: values for name, values in results.items() if name.startswith("average")}
        assert len(averages) == 9
        # The sum is 6; averages of integers are rounded towards zero.
        assert all(values == ([1.5] if "float" in name else [1]) * 3 for name, values in averages.items())
        assert results["all_to_all"] == [[each] * (1 + rank) for each in range(RANKS)]
        assert results["objects"] == [{"rank": each} for each in range(RANKS)]
        assert results["async"] == [True] * 3
        assert results.get("pair") == ([3.0, 3.0] if rank < 2 else None)
        refusals = own["refusals"]
        assert set(refusals) == {"product", "average of bool", "bits of floats", "sizes", "any source"}
        assert all("valid: " in text for text in refusals.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "arguments"),
    [("torch_ddp.py", ("--epochs", "2")), ("torch_fsdp.py", ("--steps", "20"))],
    ids=["ddp", "fsdp"],
)
def test_unmodified_scripts_train_as_over_gloo(script: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    path = ROOT / "examples" / script
    code, expected, errors = torchrun(path, *arguments, "--backend", "gloo")
    assert code == 0, errors
    settings = {"WEFT_ALGORITHM": "in-network", "WEFT_COMPUTE": "10G", "WEFT_OUT": str(tmp_path / "out")}
    code, printed, errors = torchrun(path, *arguments, **settings)
    assert code == 0, errors
    assert len(losses(expected)) == 2
    assert losses(printed) == pytest.approx(losses(expected), abs=1e-4)
    assert re.search(r"weft: step 10 took .*: computing .*, waiting .*, \d+ collectives", errors), errors
    planes = json.loads((tmp_path / "out" / "results.json").read_text())["planes"]
    assert planes[0]["packets_aggregated"] > 0
    if script == "torch_ddp.py":
        shown = re.findall("^weft: step .*", (ROOT / "docs" / "torch.md").read_text(encoding="utf-8"), re.MULTILINE)
        assert shown
        assert set(shown) <= set(errors.splitlines())
        # Emulated time repeats.
        again = torchrun(path, *arguments, **settings)[2]
        assert re.findall("weft: .*", again) == re.findall("weft: .*", errors)


@pytest.mark.slow
def test_an_example_runs_on_the_default_fabric() -> None:
    code, printed, errors = torchrun(ROOT / "examples" / "torch_ddp.py", "--epochs", "1", WEFT_SCENARIO="")
    assert code == 0, errors
    assert len(losses(printed)) == 1
    page = (ROOT / "docs" / "torch.md").read_text(encoding="utf-8")
    shown = re.findall("^weft: WEFT_SCENARIO .*", page, re.MULTILINE)
    assert len(shown) == 1
    assert shown[0] in errors.splitlines()


DYING = """
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("weft")
dist.all_reduce(torch.ones(3))
if dist.get_rank() == 1:
    os._exit(0)
try:
    dist.all_reduce(torch.ones(3))
except RuntimeError as error:
    sys.stdout.write(f"ERROR {error}\\n")  # in one piece, beside what the others print
"""


@pytest.mark.slow
def test_a_rank_that_dies_is_an_error_of_the_others(tmp_path: Path) -> None:
    script = tmp_path / "dying.py"
    script.write_text(DYING, encoding="utf-8")
    code, printed, errors = torchrun(script)
    assert code == 0, errors
    assert printed.count("ERROR rank 1 has ended without leaving the group") == RANKS - 1


RESTARTING = """
import os, sys
import torch, torch.distributed as dist

def carry(title):
    dist.init_process_group("weft")
    total = torch.full((3,), dist.get_rank() + 1.0)
    dist.all_reduce(total)
    if title == "first" and attempt == 0 and dist.get_rank() == 0:
        os._exit(3)  # with it goes who started the fabric's process
    dist.all_reduce(total)
    sys.stdout.write(f"{title} {dist.get_rank()} {attempt} {total.tolist()}\\n")
    dist.destroy_process_group()

attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
carry("first")
carry("second")
"""


@pytest.mark.slow
def test_a_script_without_settings_runs_and_restarts(tmp_path: Path) -> None:
    """On a default fabric, after a rank's death on a new one, and a second group on another one."""
    script = tmp_path / "restarting.py"
    script.write_text(RESTARTING, encoding="utf-8")
    code, printed, errors = torchrun(script, ranks=3, options=("--max-restarts", "1"), WEFT_SCENARIO="")
    assert code == 0, errors
    lines = [f"{title} {rank} 1 [18.0, 18.0, 18.0]" for title in ("first", "second") for rank in range(3)]
    assert sorted(printed.splitlines()) == lines
    said = (
        "weft: WEFT_SCENARIO is not set: the default fabric has 3 hosts at 400Gb/s, 1 below each of 3 leaves, 2 spines"
    )
    assert errors.splitlines().count(said) == 3


STAGED = """
import sys
import torch, torch.distributed as dist
from tests.pytorch.other_device import DEVICE, DeviceTensor
from weft.torch import tensors

tensors.DEVICES += (DEVICE,)
dist.init_process_group("weft")
rank = dist.get_rank()
own = DeviceTensor(torch.full((2, 2), rank + 1.0))
try:
    own.numpy()
    raise SystemExit("the stand-in's elements can be reached")
except (RuntimeError, TypeError):
    pass
dist.all_reduce(own)
counted = DeviceTensor(torch.full((3,), rank + 1, dtype=torch.int64))
dist.all_reduce(counted)
gathered = DeviceTensor(torch.zeros(4))
dist.all_gather_into_tensor(gathered, DeviceTensor(torch.tensor([rank, rank + 0.5])))
parts = [DeviceTensor(torch.zeros(2)) for _ in range(2)]
dist.all_gather(parts, DeviceTensor(torch.tensor([rank, rank + 0.5])))
part = DeviceTensor(torch.zeros(1))
dist.reduce_scatter_tensor(part, DeviceTensor(torch.tensor([1.0, 2.0])))
sent = DeviceTensor(torch.tensor([float(rank)]))
dist.broadcast(sent, 1)
swapped = DeviceTensor(torch.zeros(2))
dist.all_to_all_single(swapped, DeviceTensor(torch.tensor([10.0 * rank, 10.0 * rank + 1])))
results = [each.kept.tolist() for each in (own, counted, gathered, *parts, part, sent, swapped)]
sys.stdout.write(f"{rank} {results}\\n")
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_tensors_of_another_device_go_through_host_memory(tmp_path: Path) -> None:
    script = tmp_path / "staged.py"
    script.write_text(STAGED, encoding="utf-8")
    code, printed, errors = torchrun(script, ranks=2, WEFT_SCENARIO="")
    assert code == 0, errors
    alike = "[[3.0, 3.0], [3.0, 3.0]], [3, 3, 3], [0.0, 0.5, 1.0, 1.5], [0.0, 0.5], [1.0, 1.5]"
    assert sorted(printed.splitlines()) == [
        f"0 [{alike}, [2.0], [1.0], [0.0, 10.0]]",
        f"1 [{alike}, [4.0], [1.0], [1.0, 11.0]]",
    ]


def test_tensors_elsewhere_are_refused() -> None:
    with pytest.raises(ValueError, match=r"on meta, torch.strided \(valid: on cpu or cuda, torch.strided\)"):
        tensors.check(torch.ones(2, device="meta"), "all_reduce")
    assert tensors.devices_of([[torch.ones(1)], torch.ones(2)]) == []


@pytest.mark.slow
def test_a_fabric_of_another_size_is_an_error_of_all(tmp_path: Path) -> None:
    script = tmp_path / "calling.py"
    script.write_text(DYING, encoding="utf-8")
    code, _, errors = torchrun(script, ranks=2)
    assert code != 0
    assert "2 processes are ranks of a fabric of 4 (valid: 4)" in errors


def test_settings_of_the_environment() -> None:
    given = {
        "WEFT_SCENARIO": "a.yaml",
        "WEFT_COMPUTE": "2.5T",
        "WEFT_ALGORITHM": "in-network",
        "WEFT_OUT": "out",
    }
    settings = Settings.of_environment(given)
    assert settings == Settings(Path("a.yaml"), "in-network", "2.5T", Path("out"))
    assert settings.flops == 2.5e12
    assert Settings(Path("a.yaml")).flops is None
    assert Settings.of_environment({}) == Settings()
    assert Settings().scenario is None


@pytest.mark.parametrize("compute", ["", "T", "-1", "0", "nan", "1e30", "10 TF", "fast"])
def test_ways_to_compute_that_there_are_not_are_refused(compute: str) -> None:
    with pytest.raises(ValueError, match=r"valid: none, measured, or FLOP/s"):
        Settings(Path("a.yaml"), compute=compute)
