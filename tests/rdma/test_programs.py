"""Programs of hosts: from scenarios and from Python, what happens when they raise or do not return, repeatability."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

import weft
from tests.rdma.conftest import FAULTS, one_switch
from tests.refusals import refused
from weft import rdma, topologies
from weft.clocks.virtual import standstill
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError
from weft.paths import ROOT
from weft.results.rdma import RDMA
from weft.results.results_file import read_results
from weft.run.runner import run_scenario
from weft.run.spec import run_spec
from weft.scenario import load_scenario

PING = str(ROOT / "examples" / "rdma_ping.py")


def written(directory: Path, text: str) -> str:
    file = directory / "mine.py"
    file.write_text(f"import asyncio\nfrom weft import rdma\n\n{text}")
    return str(file)


def test_a_scenario_runs_programs_and_repeats(tmp_path: Path) -> None:
    scenario = load_scenario(ROOT / "examples" / "rdma_ping.yaml")
    first, second = (run_scenario(run_spec(scenario)) for _ in range(2))
    assert first.of(RDMA) == second.of(RDMA)
    assert first.of(RDMA)[0].programs[0].values == {
        "the client's last word": 2026,
        "sum of the memory": (1 << 20) + 1,
    }
    file = tmp_path / "results.json"
    file.write_text(json.dumps(first.as_dict()))
    assert read_results(file).of(RDMA) == first.of(RDMA)


@pytest.mark.parametrize("faults", [None, FAULTS])
def test_any_number_of_workers_gives_the_same(faults: Any) -> None:
    """Programs of four leaves, which are partitions of their own, meet at one server."""
    fabric = topologies.leaf_spine(planes=1, leaves=4, spines=2, hosts_per_leaf=1)
    results = []
    for workers in (1, 3):
        with weft.Fabric(fabric, seed=2, clock="virtual", workers=workers, faults=faults) as running:
            results.append(running.rdma({"h0": _store, "others": _clients}).as_dict())
    assert results[0] == results[1]
    assert results[0]["programs"][0]["values"]["received"] == 3 * 20


async def _store(device: rdma.Device) -> None:
    pd, cq = rdma.PD(device), rdma.CQ(device)
    mr = rdma.MR(pd, 1 << 16, rdma.enums.IBV_ACCESS_LOCAL_WRITE | rdma.enums.IBV_ACCESS_REMOTE_WRITE)
    listener = device.listen()
    for _ in device.hosts[1:]:
        qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq))
        for number in range(20):
            qp.post_recv(rdma.RecvWR(number))
        await listener.accept(qp, {"addr": mr.addr, "rkey": mr.rkey})
    for number in range(3 * 20):
        (wc,) = await cq.poll()
        device.record("received", number, wc.check().imm_data)
        device.record("at", number, device.now_ps)
    device.report("received", 3 * 20)


async def _clients(device: rdma.Device) -> None:
    pd, cq = rdma.PD(device), rdma.CQ(device)
    mr = rdma.MR(pd, 1 << 16, rdma.enums.IBV_ACCESS_LOCAL_WRITE)
    qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq))
    remote = await qp.connect("h0")
    for number in range(20):
        request = rdma.SendWR(number, [mr.sge(0, 4096)], rdma.enums.IBV_WR_RDMA_WRITE_WITH_IMM, imm_data=number)
        qp.post_send(request.set_wr_rdma(remote["rkey"], remote["addr"]))
        (await cq.poll())[0].check()


def test_a_program_that_raises_ends_the_run_with_its_own_frames(fabric: weft.Fabric, tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "async def broken(device):\n    await device.sleep(5)\n    deeper(0)\n\n\ndef deeper(x):\n    return 1 / x\n",
    )
    with pytest.raises(BadInputError) as raised:
        fabric.rdma({"h0": f"{PING}:server", "h2": f"{file}:broken"})
    told = str(raised.value)
    assert f"{file}:10: ZeroDivisionError: division by zero, raised by h2 ({file}:broken)" in told
    assert "return 1 / x" in told
    assert "deeper(0)" in told
    assert "weft/clocks" not in told
    assert "asyncio" not in told


def test_what_a_program_gets_wrong_with_verbs_is_told_with_its_line(fabric: weft.Fabric, tmp_path: Path) -> None:
    file = written(tmp_path, "async def wrong(device):\n    rdma.MR(rdma.PD(device), 0, 1)\n")
    with refused(BadInputError, problem="py:5: VerbsError: a memory"):
        fabric.rdma({"h1": f"{file}:wrong"})


def test_a_program_cannot_end_the_process(fabric: weft.Fabric, tmp_path: Path) -> None:
    file = written(tmp_path, "async def leaves(device):\n    raise SystemExit(0)\n")
    with refused(BadInputError, problem="leaves) called sys"):
        fabric.rdma({"h1": f"{file}:leaves"})


def test_a_program_that_never_ends_meets_the_timeout(fabric: weft.Fabric, tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "async def waits(device):\n"
        "    cq = rdma.CQ(device)\n"
        "    await helper(cq)\n\n"
        "async def helper(cq):\n"
        "    await cq.poll()\n\n"
        "async def stuck(device):\n"
        "    await asyncio.Event().wait()\n",
    )
    with pytest.raises(CheckFailedError) as raised:
        fabric.rdma({"h0": f"{PING}:server", "h1": f"{file}:waits", "h2": f"{file}:stuck"}, timeout_s=1)
    told = str(raised.value)
    assert "not all programs have returned after 1 s" in told
    assert f"h0 ({PING}:server) waits for a connection request for 'ping' at {PING}:" in told
    assert f"h1 ({file}:waits) waits for a completion at {file}:9: await cq.poll()" in told
    assert f"h2 ({file}:stuck) waits for nothing of the device" in told


def test_after_a_failed_run_the_next_one_is_a_first_one(fabric: weft.Fabric, tmp_path: Path) -> None:
    programs = {"h0": f"{PING}:server", "h3": f"{PING}:client"}
    first = fabric.rdma(programs)
    file = written(tmp_path, "async def broken(device):\n    raise KeyError('x')\n")
    with pytest.raises(BadInputError):
        fabric.rdma({"h0": f"{PING}:server", "h1": f"{file}:broken"})
    assert fabric.rdma(programs) == first


def test_tasks_of_a_program_end_with_it(fabric: weft.Fabric) -> None:
    ends: list[str] = []

    async def background(device: rdma.Device) -> None:
        try:
            await device.sleep(10**12)
        finally:
            ends.append("cancelled")

    async def main(device: rdma.Device) -> None:
        import asyncio

        task = asyncio.create_task(background(device))
        await device.sleep(1000)
        assert not task.done()

    result = fabric.rdma({"h0": main})
    assert ends == ["cancelled"]
    assert result.time_ps == 1000


def test_classes_are_programs_with_parameters(fabric: weft.Fabric, tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "class Sleeper(rdma.Program):\n"
        "    def __init__(self, duration_ps=1):\n"
        "        self.duration_ps = duration_ps\n\n"
        "    async def run(self, device):\n"
        "        await device.sleep(self.duration_ps)\n",
    )
    reference = f"{file}:Sleeper"
    result = fabric.rdma({"h1": reference, "others": reference}, {"h1": {"duration_ps": 7000}})
    assert [(each.host, each.time_ps) for each in result.programs] == [
        ("h0", 1),
        ("h1", 7000),
        ("h2", 1),
        ("h3", 1),
    ]


@pytest.mark.parametrize(
    ("programs", "parameters", "message"),
    [
        ({"h9": f"{PING}:server"}, {}, {"problem": "no host 'h9'"}),
        (
            {"h0": 5},
            {},
            {
                "valid": "path/to/file.py:Name, an 'async def' function, a weft.rdma.Program",
                "problem": "h0: '5' is no program",
            },
        ),
        ({"h0": f"{PING}:nobody"}, {}, {"problem": "has no class 'nobody'"}),
        ({"h0": f"{PING}:server"}, {"h0": {"x": 1}}, {"problem": "unexpected keyword argument 'x'"}),
        ({"h0": f"{PING}:server"}, {"h1": {}}, {"problem": "parameters for h1, which has no"}),
        ({}, {}, {"valid": "one or more", "problem": "no host has a program"}),
    ],
)
def test_what_is_no_program_is_refused(
    fabric: weft.Fabric, programs: dict[str, Any], parameters: dict[str, Any], message: dict[str, str]
) -> None:
    with refused(BadInputError, **message):
        fabric.rdma(programs, parameters)


def test_selective_repeat_is_refused() -> None:
    from weft.scenario.transport import TransportSection

    transport = TransportSection(retransmission="selective-repeat")
    with (
        weft.Fabric(one_switch(), clock="virtual", transport=transport) as fabric,
        refused(BadInputError, place="transport.retransmission", valid="go-back-n", problem="carries neither SENDs"),
    ):
        fabric.rdma({"h0": f"{PING}:server"})


def test_the_other_plane_is_another_port() -> None:
    async def client(device: rdma.Device, port_num: int) -> None:
        pd, cq = rdma.PD(device), rdma.CQ(device)
        qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq, port_num=port_num))
        await qp.connect("h0")
        device.report("connected", qp.state.name)

    async def server(device: rdma.Device) -> None:
        pd, cq = rdma.PD(device), rdma.CQ(device)
        await device.listen().accept(rdma.QP(pd, rdma.QPInitAttr(cq, cq, port_num=2)))

    with weft.Fabric(one_switch(planes=2), clock="virtual") as fabric:
        result = fabric.rdma({"h0": server, "h1": client}, {"h1": {"port_num": 2}})
        assert result.programs[1].texts == {"connected": "IBV_QPS_RTS"}
        with refused(rdma.VerbsError, problem="port 2 cannot be connected to"):
            fabric.rdma({"h0": server, "h1": client}, {"h1": {"port_num": 1}})


def test_values_are_exchanged(fabric: weft.Fabric) -> None:
    async def main(device: rdma.Device) -> None:
        everyone = await device.rendezvous("names", device.name.upper())
        device.report("everyone", " ".join(everyone.values()))
        if device.name in ("h0", "h1"):
            other = "h1" if device.name == "h0" else "h0"
            device.report("other", await device.exchange(other, {"n": [1, 2]}) == {"n": [1, 2]})

    result = fabric.rdma({"others": main})
    assert {each.texts["everyone"] for each in result.programs} == {"H0 H1 H2 H3"}
    assert [each.values for each in result.programs] == [{"other": 1}, {"other": 1}, {}, {}]


def test_several_processes_are_refused() -> None:
    from weft.clocks.host_programs import ProgramRun
    from weft.clocks.virtual.lab import VirtualLab

    lab = VirtualLab.__new__(VirtualLab)
    lab._processes = type("Two", (), {"count": 2})()  # type: ignore[assignment]
    with refused(EnvironmentLacksError, problem="one process"):
        lab.run_programs(ProgramRun([], 1.0))


@pytest.mark.parametrize("step", ["pass", "await asyncio.sleep(0)"])
def test_a_program_that_never_gives_way_is_told_where(
    step: str, fabric: weft.Fabric, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standstill, "LIMIT_S", 0.2)
    file = written(tmp_path, f"async def spins(device):\n    while True:\n        {step}\n")
    with pytest.raises(BadInputError) as raised:
        fabric.rdma({"h0": f"{PING}:server", "h2": f"{file}:spins"})
    assert re.search(r"mine\.py:[56]: StandstillError: virtual time has stood still for 0\.2 s", str(raised.value))
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)
    assert signal.getsignal(signal.SIGVTALRM) is signal.SIG_DFL


def test_a_program_is_never_ended_while_the_loop_is_about_to_go_on_with_it() -> None:
    """Its task would be lost, and whoever waits for it would wait for ever."""

    async def spins() -> None:
        while True:
            await asyncio.sleep(0)

    async def run() -> None:
        loop = asyncio.get_running_loop()
        with standstill.standstill_ends(loop, lambda: 0, lambda: True, 0.02):
            await asyncio.wait_for(asyncio.create_task(spins()), 60)

    for _ in range(20):
        with pytest.raises(standstill.StandstillError):
            asyncio.run(run())


def test_a_flush_gives_way_to_its_cause_at_the_peer(fabric: weft.Fabric, tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "from weft.rdma import enums as e\n\n\n"
        "async def server(device):\n"
        "    pd, cq = rdma.PD(device), rdma.CQ(device)\n"
        "    qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq))\n"
        "    qp.post_recv(rdma.RecvWR())\n"
        "    await device.listen().accept(qp)\n"
        "    (await cq.poll())[0].check()\n\n\n"
        "async def client(device):\n"
        "    pd, cq = rdma.PD(device), rdma.CQ(device)\n"
        "    mr = rdma.MR(pd, 64, e.IBV_ACCESS_LOCAL_WRITE)\n"
        "    qp = rdma.QP(pd, rdma.QPInitAttr(cq, cq))\n"
        "    await qp.connect('h0')\n"
        "    qp.post_send(rdma.SendWR(7, [mr.sge(0, 64)], e.IBV_WR_RDMA_READ).set_wr_rdma(1, 0))\n"
        "    (await cq.poll())[0].check()\n",
    )
    with refused(BadInputError, problem="IBV_WC_REM_ACCESS_ERR, raised"):
        fabric.rdma({"h0": f"{file}:server", "h1": f"{file}:client"})
