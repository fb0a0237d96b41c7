"""The programs of the example under the real clock, in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

import weft
from tests.rdma.conftest import one_switch
from weft.errors import BadInputError, CheckFailedError, EnvironmentLacksError
from weft.paths import ROOT

PING = str(ROOT / "examples" / "rdma_ping.py")


@pytest.mark.mininet
def test_the_same_programs_run_in_mininet(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "import asyncio, time\nfrom weft import rdma\n\n"
        "async def broken(device):\n    await device.sleep(1000)\n    1 / 0\n\n"
        "async def waits(device):\n    await rdma.CQ(device).poll()\n\n"
        "async def blocks(device):\n    time.sleep(5)\n\n"
        "async def cancelled(device):\n    raise asyncio.CancelledError\n"
    )
    with weft.Fabric(one_switch(), seed=1, clock="real") as fabric:
        for _ in range(2):
            result = fabric.rdma({"h0": f"{PING}:server", "h3": f"{PING}:client"}, timeout_s=60)
            assert result.programs[0].values == {
                "the client's last word": 2026,
                "sum of the memory": (1 << 20) + 1,
            }
            assert {each.opcode: each.operations for each in result.operations} == {
                "IBV_WC_RECV_RDMA_WITH_IMM": 1,
                "IBV_WR_ATOMIC_FETCH_AND_ADD": 1,
                "IBV_WR_RDMA_READ": 3,
                "IBV_WR_RDMA_WRITE": 3,
                "IBV_WR_RDMA_WRITE_WITH_IMM": 1,
            }
        with pytest.raises(BadInputError, match=r"mine.py:6: ZeroDivisionError: .* raised by h1"):
            fabric.rdma({"h0": f"{PING}:server", "h1": f"{file}:broken"})
        with pytest.raises(BadInputError, match=r"mine.py:15: CancelledError: .* raised by h2"):
            fabric.rdma({"h0": f"{PING}:server", "h2": f"{file}:cancelled"})
        with pytest.raises(CheckFailedError) as raised:
            fabric.rdma({"h1": f"{file}:waits", "h2": f"{file}:blocks"}, timeout_s=1)
        assert f"h1 ({file}:waits) waits for a completion at {file}:9: await rdma.CQ(device).poll()" in str(
            raised.value
        )
        assert f"h2 ({file}:blocks) does not give way to its event loop" in str(raised.value)
        with pytest.raises(EnvironmentLacksError, match="loads programs from files"):
            fabric.rdma({"h0": _local})


async def _local(device: object) -> None:
    """Could only run in this process."""
