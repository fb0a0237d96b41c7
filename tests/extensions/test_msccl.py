"""Algorithms of MSCCL run as collectives, and their results are verified."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from weft import Fabric
from weft.cli import weft
from weft.engine import ExtensionError
from weft.errors import BadInputError
from weft.paths import ROOT
from weft.run.collectives import CollectiveRequest
from weft.run.runner import run_scenario
from weft.scenario import load_scenario
from weft.topologies import leaf_spine
from weft.traffic.collectives import collective_named

EXAMPLE = ROOT / "examples" / "msccl"
RING = (EXAMPLE / "ring.xml").read_text()
SCHEDULER = os.environ.get("WEFT_MSCCL_SCHEDULER", "")
PUBLIC = (
    "ncv4/ag_hier_4_LL",
    "ncv4/ar_tree_12_LL",
    "ncv4/ar_hier_12_Simple",
    "ndv4/a2a2ll",
    "ndv4/ap2ll",
    "ndv4/r48ll",
)
ALGO = '<algo name="x" coll="{}" ngpus="2" nchunksperloop="{}" inplace="{}">'


def step(
    number: int, kind: str, source: str, destination: str, count: int = 1, after: tuple[int, int] = (-1, -1)
) -> str:
    return (
        f'<step s="{number}" type="{kind}" srcbuf="{source[0]}" srcoff="{source[1:]}" dstbuf="{destination[0]}" '
        f'dstoff="{destination[1:]}" cnt="{count}" depid="{after[0]}" deps="{after[1]}" hasdep="0"/>'
    )


def gpu(rank: int, chunks: tuple[int, int, int], *blocks: str) -> str:
    sizes = dict(zip(("i_chunks", "o_chunks", "s_chunks"), chunks, strict=True))
    inside = "".join(
        f'<tb id="{number}" send="{1 - rank}" recv="{1 - rank}" chan="{number}">{steps}</tb>\n'
        for number, steps in enumerate(blocks)
    )
    return f'<gpu id="{rank}" ' + " ".join(f'{key}="{value}"' for key, value in sizes.items()) + f">{inside}</gpu>\n"


@pytest.fixture
def run(tmp_path):
    def of(text: str, collective: str, elements: int, planes: int = 1):
        (tmp_path / "x.xml").write_text(text)
        inputs = [np.arange(elements, dtype=np.int32) + 1000 * rank for rank in range(2)]
        topology = leaf_spine(planes=planes, leaves=2, spines=1, hosts_per_leaf=1)
        with Fabric(topology, clock="virtual") as fabric:
            found = fabric.run(CollectiveRequest(f"{tmp_path}/x.xml:{collective}", inputs, "msccl"))
        assert found.result.verified
        return inputs, found

    return of


def test_the_example_is_verified_and_takes_as_long_as_wefts_ring():
    theirs, _, ours, _ = run_scenario(load_scenario(EXAMPLE / "scenario.yaml")).collectives
    assert theirs.ok
    assert theirs.verified
    assert theirs.collective == "msccl-ring"
    assert theirs.time_ps == ours.time_ps


def test_the_page_has_the_example_and_what_it_prints(tmp_path):
    page = (ROOT / "docs" / "howto" / "collective.md").read_text(encoding="utf-8")
    assert (EXAMPLE / "scenario.yaml").read_text(encoding="utf-8") in page
    printed = CliRunner().invoke(weft, ["run", str(EXAMPLE / "scenario.yaml"), "--out", str(tmp_path)]).output
    (shown,) = re.findall(r"```\n(all-reduce of MSCCL.*?)```", page, re.DOTALL)
    assert shown in printed
    hashes = json.loads((tmp_path / "results.json").read_text())["made_by"]["extensions"]
    assert list(hashes) == ["ring.xml"]


@pytest.mark.parametrize("planes", [1, 2])
def test_copies_reductions_scratch_and_dependencies(run, planes):
    """Both blocks of a GPU send the half that the other GPU reduces; a third copies the results to the output."""
    blocks = [
        (
            step(0, "s", "i0", "s0") + step(1, "r", "i0", "s0"),
            step(0, "s", "i1", "s1") + step(1, "r", "i1", "s1"),
            step(0, "nop", "i0", "o0", 0, (0, 1))
            + step(1, "cpy", "i0", "o0", 2, (1, 1))
            + step(2, "re", "s0", "o0", 2),
        )
    ] * 2
    text = (
        ALGO.format("allreduce", 2, 0) + "".join(gpu(rank, (2, 2, 2), *blocks[rank]) for rank in range(2)) + "</algo>"
    )
    inputs, found = run(text, "allreduce", 64, planes)
    for buffer in found.buffers:
        np.testing.assert_array_equal(buffer, sum(inputs))


@pytest.mark.parametrize("in_place", [0, 1])
def test_gathers_in_place_or_not(run, in_place):
    def of(rank: int) -> str:
        own, other = f"o{rank}", f"o{1 - rank}"
        copy = "" if in_place else step(0, "cpy", "i0", own)
        first = 0 if in_place else 1
        return copy + step(first, "s", "i0", own) + step(first + 1, "r", "i0", other)

    text = (
        ALGO.format("allgather", 2, in_place) + "".join(gpu(rank, (1, 2, 0), of(rank)) for rank in range(2)) + "</algo>"
    )
    inputs, found = run(text, "allgather", 8)
    for buffer in found.buffers:
        np.testing.assert_array_equal(buffer, np.concatenate(inputs))


def test_reduce_scatters_and_all_to_alls(run):
    steps = [step(0, "s", f"i{1 - rank}", "i0") + step(1, "rrc", f"i{rank}", "o0") for rank in range(2)]
    text = (
        ALGO.format("reduce_scatter", 2, 0)
        + "".join(gpu(rank, (2, 1, 0), steps[rank]) for rank in range(2))
        + "</algo>"
    )
    inputs, found = run(text, "reducescatter", 8)
    np.testing.assert_array_equal(np.concatenate(found.buffers), sum(inputs))
    steps = [
        step(0, "s", f"i{1 - rank}", f"o{rank}")
        + step(1, "cpy", f"i{rank}", f"o{rank}")
        + step(2, "r", "i0", f"o{1 - rank}")
        for rank in range(2)
    ]
    text = ALGO.format("alltoall", 2, 0) + "".join(gpu(rank, (2, 2, 0), steps[rank]) for rank in range(2)) + "</algo>"
    inputs, found = run(text, "alltoall", 8)
    np.testing.assert_array_equal(found.buffers[1], np.concatenate([each[4:] for each in inputs]))


def test_a_wrong_algorithm_is_found_out(tmp_path):
    """The last rank forwards the sum without its own part."""
    (tmp_path / "ring.xml").write_text(RING.replace('<step s="3" type="rrcs"', '<step s="3" type="rcs"', 1))
    (tmp_path / "s.yaml").write_text((EXAMPLE / "scenario.yaml").read_text())
    found = run_scenario(load_scenario(tmp_path / "s.yaml")).collectives[0]
    assert found.wrong > 0
    assert not found.ok


def changed(*replaced: str) -> str:
    text = RING
    for before, after in zip(replaced[::2], replaced[1::2], strict=True):
        assert before in text
        text = text.replace(before, after, 1)
    return text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not XML: no element found"),
        ("<algo", "line 1: is not XML: unclosed token"),
        ('<!DOCTYPE algo [<!ENTITY a "b">]>' + RING, "line 1: DOCTYPE 'algo' is refused"),
        ("<graph/>", "line 1: <graph> (valid: algo)"),
        (changed('coll="allreduce"', 'coll="alltonext"'), "line 1: coll is 'alltonext' (valid: allreduce, "),
        (changed('ngpus="4"', 'ngpus="5"'), "has 4 gpu elements (valid: ngpus: 5)"),
        (changed('ngpus="4"', 'ngpus="9999999999999"'), "ngpus is '9999999999999' (valid: 1 to 1024)"),
        (changed('nchunksperloop="4"', 'nchunksperloop="8"'), "gpu 0 has 4 input and 0 output chunks (valid: those of"),
        (changed('gpu id="1"', 'gpu id="0"'), "gpu 0 occurs twice"),
        (changed('s="1" type', 's="2" type'), "line 5: step 2 of tb 0 (valid: 1)"),
        (changed('type="rrs"', 'type="xyz"'), "line 5: type is 'xyz' (valid: r, rcs, "),
        (changed('srcoff="3"', 'srcoff="4"'), "chunks 4 to 4 of buffer i (valid: 0 to 3)"),
        (changed('cnt="1"', 'cnt="9"'), "chunks 0 to 8 of buffer i (valid: 0 to 3)"),
        (changed('depid="-1" deps="-1"', 'depid="7" deps="0"'), "line 4: depid=7, deps=0 (valid: a step of the gpu)"),
        (changed('depid="-1" deps="-1"', 'depid="0" deps="6"'), "steps wait for each other"),
        (changed('send="1"', 'send="2"'), "gpu 0 sends 0 messages to gpu 1 in channel 0, which receives 6"),
        (changed('send="1"', 'send="0"'), "gpu 0 has itself as a peer"),
        (changed('send="1"', 'send="-1"'), "line 4: a step s with send=-1 (valid: below 4)"),
        (changed('type="r" ', 'type="nop" '), "which receives 5"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_are_refused_by_line(tmp_path, text, said):
    (tmp_path / "x.xml").write_text(text)
    with pytest.raises(ExtensionError) as error:
        collective_named(f"{tmp_path}/x.xml:allreduce")
    assert said in str(error.value)
    assert "cannot be decoded" not in str(error.value)


def test_other_collectives_ranks_and_sizes_are_refused(tmp_path):
    with pytest.raises(ExtensionError, match="this is an algorithm of allreduce, not of alltoall"):
        collective_named(f"{EXAMPLE}/ring.xml:alltoall")
    with pytest.raises(ExtensionError, match=r"no\.xml cannot be read: No such file"):
        collective_named(f"{tmp_path}/no.xml:allreduce")
    for hosts, inputs, said in (
        (1, 4096, "2 ranks (valid: 4, as the file has)"),
        (2, [np.ones(6, np.int32)] * 4, "6 elements (valid: a multiple of the file's 4 chunks)"),
    ):
        topology = leaf_spine(planes=1, leaves=2, spines=1, hosts_per_leaf=hosts)
        with Fabric(topology, clock="virtual") as fabric, pytest.raises(BadInputError, match=re.escape(said)):
            fabric.run(CollectiveRequest(f"{EXAMPLE}/ring.xml:allreduce", inputs, "msccl"))


@pytest.mark.skipif(not SCHEDULER, reason="WEFT_MSCCL_SCHEDULER names no clone of Azure/msccl-scheduler")
@pytest.mark.parametrize("name", PUBLIC)
def test_public_algorithms_are_verified(name):
    path = Path(SCHEDULER) / "tools" / "msccl-algorithms" / f"{name}.xml"
    (attributes,) = re.findall("<algo .*>", path.read_text())
    ranks, chunks = (int(re.search(f'{key}="(\\d+)"', attributes)[1]) for key in ("ngpus", "nchunksperloop"))
    kind = re.search('coll="(\\w+)"', attributes)[1]
    elements = chunks // (ranks if kind == "allgather" else 1)
    inputs = [np.arange(elements, dtype=np.int32) * (rank + 3) for rank in range(ranks)]
    topology = leaf_spine(planes=2, leaves=2, spines=1, hosts_per_leaf=ranks // 2)
    with Fabric(topology, clock="virtual") as fabric:
        result = fabric.run(CollectiveRequest(f"{path}:{kind}", inputs, "msccl")).result
    assert result.ok
    assert result.verified
