"""Classes of users under both clocks: hosts of the real one are processes that load the files themselves."""

import pytest

from weft.errors import WeftError
from weft.paths import ROOT
from weft.results.run_result import RunResult
from weft.run.runner import run_scenario
from weft.scenario import parse_scenario

EXAMPLES = ROOT / "examples"
FABRIC = {"planes": 1, "leaves": 2, "spines": 2, "hosts_per_leaf": 1, "host_rate": "10Gbps"}
FAILING = """\
import weft


class Failing(weft.PathChoice):
    def entropy(self, now_ps, sequence, retransmission):
        if sequence == 5:
            raise LookupError("no path")
        return 0
"""

FAILING_LINE = FAILING.splitlines().index('            raise LookupError("no path")') + 1


def run(clock: str, transport: dict[str, object]) -> RunResult:
    return run_scenario(
        parse_scenario(
            {
                "clock": clock,
                "fabric": FABRIC,
                "transport": transport,
                "traffic": [
                    {"pattern": f"{EXAMPLES}/shuffle.py:Shuffle", "parameters": {"block_bytes": 65536}},
                    {"incast": "h0", "bytes_per_sender": 262144},
                ],
            }
        )
    )


def test_all_three_kinds_do_the_same_work_under_both_clocks() -> None:
    transport = {
        "congestion_control": f"{EXAMPLES}/timely.py:Timely",
        "parameters": {"window": 1},
        "path": f"{EXAMPLES}/plb.py:Plb",
        "retransmission": "selective-repeat",
        "reordering_window": "100us",
    }
    real, virtual = run("real", transport), run("virtual", transport)
    assert [flow.pattern for flow in real.flows] == ["Shuffle", "incast on h0, plane 0"]
    for mine, other in zip(real.flows, virtual.flows, strict=True):
        assert (mine.flows, mine.bytes_delivered) == (other.flows, other.bytes_delivered)
    assert real.made_by.parameters["extensions"] == virtual.made_by.parameters["extensions"]
    assert sorted(real.made_by.parameters["extensions"]) == ["plb.py", "timely.py"]


@pytest.mark.parametrize("clock", ["real", "virtual"])
def test_an_exception_ends_the_run_under_both_clocks(tmp_path, clock) -> None:
    path = tmp_path / "failing.py"
    path.write_text(FAILING, encoding="utf-8")
    with pytest.raises(WeftError, match="LookupError: no path") as caught:
        run(clock, {"path": f"{path}:Failing"})
    assert str(caught.value).startswith(f"{path}:{FAILING_LINE}: LookupError: no path"), str(caught.value)
    assert "weft/" not in str(caught.value).replace(str(path), "")
    assert "entropy" in str(caught.value)
