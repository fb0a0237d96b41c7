"""Tables of nccl-tests and rccl-tests are read whatever their version, or refused with the line.

WEFT_SUPERBENCH_CLONE names a local clone of microsoft/superbenchmark, which has logs of a DGX A100.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.calibration.nccl_tests import EXAMPLE, example_logs, log_text
from weft.calibration import read_log
from weft.calibration.logs import MAX_FILE_BYTES, parse_log
from weft.errors import BadInputError

CLONE = Path(os.environ.get("WEFT_SUPERBENCH_CLONE", "")) / "tests" / "data"
HOSTS = ["a", "a", "b", "b"]
LOG = log_text("all_reduce_perf", HOSTS, [1024, 2048, 4096], [5e6, 123.4e6, 20_000e6])
OLD_ALL_TO_ALL = """# nThread 1 nGpus 2 minBytes 1 maxBytes 64 step: 2(factor) warmup iters: 5 iters: 20 validation: 0
#   Rank  0 Pid 16 on localhost device  0 [0x00] GPU
#   Rank  1 Pid 16 on localhost device  1 [0x00] GPU
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           0             0   float             1.63    0.00    0.00    N/A     1.38    0.00    0.00    N/A
          32             4   float            89.00    0.00    0.00    N/A    85.13    0.00    0.00    N/A
          64             8   float            86.83    0.00    0.00    N/A    85.77    0.00    0.00    N/A
# Avg bus bandwidth    : 1
"""


def error_of(text: str, **options: object) -> str:
    with pytest.raises(BadInputError) as caught:
        parse_log(text, "x.log", **options)  # type: ignore[arg-type]
    return str(caught.value)


def require_place(error: BadInputError) -> None:
    assert error.place.startswith("x.log")


def test_a_table_is_read() -> None:
    [table] = parse_log(LOG, "x.log")
    assert (table.collective, table.ranks, table.nodes, table.remarks) == ("allreduce", 4, 2, ())
    assert [(row.size_bytes, row.time_ps) for row in table.measurements] == [
        (1024, 5e6),
        (2048, pytest.approx(123.4e6)),
        (4096, 20_000e6),
    ]


def test_times_in_place_are_taken_on_request() -> None:
    [table] = parse_log(LOG, "x.log", in_place=True)
    assert table.measurements[0].time_ps == pytest.approx(4.9e6)


def test_an_empty_column_of_an_old_version_is_none() -> None:
    [table] = parse_log(OLD_ALL_TO_ALL, "nccl_alltoall.log")
    assert (table.collective, [row.time_ps for row in table.measurements]) == ("alltoall", [89e6, 86.83e6])


def test_several_tables_of_a_log_stay_apart() -> None:
    tables = parse_log(LOG + log_text("all_gather_perf", HOSTS[:2], [1024], [7e6]), "x.log")
    assert [(each.collective, each.ranks) for each in tables] == [("allreduce", 4), ("allgather", 2)]


def test_sizes_that_repeat_count_once_by_their_median() -> None:
    log = log_text("all_reduce_perf", HOSTS, [1024, 1024, 1024], [5e6, 50e6, 6e6])
    [row] = parse_log(log, "x.log")[0].measurements
    assert (row.time_ps, row.rows) == (6e6, 3)


def test_prefixes_of_launchers_and_lines_of_nccl_are_skipped() -> None:
    noise = "host:3442:3442 [0] NCCL INFO 4096 Bytes -> Algo 0 proto 0 time 25.8\n"
    tagged = "".join(f"(head, rank=0, pid=38) [1,0]<stdout>:{line}\n{noise}" for line in LOG.splitlines())
    plain, found = parse_log(LOG, "x.log")[0], parse_log(tagged, "x.log")[0]
    assert [(row.size_bytes, row.time_ps) for row in found.measurements] == [
        (row.size_bytes, row.time_ps) for row in plain.measurements
    ]


def test_a_missing_end_and_wrong_elements_are_remarks() -> None:
    lines = LOG.splitlines()
    assert "ends before" in parse_log("\n".join(lines[:-3]), "x.log")[0].remarks[0]
    wrong = [line[:-1] + "3" if line.lstrip().startswith("1024 ") else line for line in lines]
    wrong = [line.replace("0.36      0", "0.36      3") for line in wrong]
    remarks = parse_log("\n".join(wrong).replace("      0     4.90", "      2     4.90"), "x.log")[0].remarks
    assert remarks == ("x.log:13: nccl-tests found wrong elements",)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("    20000", "    2000", "x.log:15: algbw is 0 GB/s"),
        ("     5.00", "      N/A", "x.log:13: time is 'N/A'"),
        ("     5.00", "     0.00", "x.log:13: the time is 0 us"),
        ("     5.00    0.20", "     1e99    0.00", "x.log:13: the time is 1e+99 us (valid: above 0, to 1e+09 us)"),
        ("#  Rank  2", "#  Rank  1", "x.log:7: rank 1 a second time"),
        ("#  Rank  2", "#  Rank  7", "x.log:1: has no line for rank 2"),
        ("all_reduce_perf", "sendrecv_perf", "x.log:1: Weft has no collective for sendrecv_perf (valid: all_reduce"),
        ("# Collective test starting: all_reduce_perf", "#", "x.log:1: neither the log nor its name"),
        ("#  Rank", "#  Ronk", "does not say which ranks ran"),
        ("#       size", "#       sise", "x.log: has no table of nccl-tests"),
    ],
)
def test_what_contradicts_itself_is_refused_with_its_line(old: str, new: str, said: str) -> None:
    assert old in LOG
    text = LOG.replace(old, new)
    if new == "    2000":
        text = LOG.replace("    20000    0.00", "        1    0.00", 1)
        said = "x.log:15: algbw is 0 GB/s, but 4096 B in 1 us are 4.10 GB/s"
    assert said in error_of(text)


def test_times_in_place_that_are_not_there_are_refused() -> None:
    heading = "# size count type redop root time algbw busbw #wrong"
    text = LOG.split("#       size")[0] + heading + "\n 1024 256 float sum -1 5.00 0.20 0.31 0\n"
    assert parse_log(text, "x.log")[0].measurements[0].time_ps == 5e6
    assert "no times in place" in error_of(text, in_place=True)


def test_a_large_file_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    large = tmp_path / "large.log"
    with large.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    for path, said in ((large, "too large"), (tmp_path / "none.log", "cannot be read")):
        with pytest.raises(BadInputError, match=said):
            read_log(path)


@given(cut=st.integers(0, len(LOG)))
def test_a_log_that_was_cut_gives_its_whole_rows_or_an_error_with_a_place(cut: int) -> None:
    whole = {row.size_bytes: row.time_ps for row in parse_log(LOG, "x.log")[0].measurements}
    try:
        [table] = parse_log(LOG[:cut], "x.log")
    except BadInputError as error:
        require_place(error)
    else:
        assert {row.size_bytes: row.time_ps for row in table.measurements}.items() <= whole.items()


@given(
    rows=st.dictionaries(
        st.integers(1, 2**34).map(lambda size: 4 * size), st.floats(1e6, 1e12), min_size=1, max_size=9
    ),
    ranks=st.integers(2, 40),
)
def test_what_is_printed_is_read(rows: dict[int, float], ranks: int) -> None:
    [table] = parse_log(log_text("reduce_scatter_perf", ["n"] * ranks, list(rows), list(rows.values())), "x")
    assert (table.collective, table.ranks) == ("reducescatter", ranks)
    assert {row.size_bytes: row.time_ps for row in table.measurements} == {
        size: pytest.approx(time, rel=0.006) for size, time in rows.items()
    }


@given(st.text(st.characters(codec="utf-8"), max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    for each in (text, LOG + text, LOG.replace("     5.00", text)):
        try:
            parse_log(each, "x.log")
        except BadInputError as error:
            require_place(error)


def test_the_examples_logs_are_those_of_known_values() -> None:
    for name, text in example_logs().items():
        assert (EXAMPLE / name).read_text() == text, "python -m tests.calibration.nccl_tests writes them"


@pytest.mark.skipif(
    not os.environ.get("WEFT_SUPERBENCH_CLONE"),
    reason="WEFT_SUPERBENCH_CLONE names no clone of microsoft/superbenchmark",
)
@pytest.mark.parametrize(
    ("name", "collective", "sizes"),
    [
        ("nccl_allreduce.log", "allreduce", 32),
        ("nccl_allgather.log", "allgather", 29),
        ("nccl_reducescatter.log", "reducescatter", 29),
        ("nccl_alltoall.log", "alltoall", 29),
    ],
)
def test_logs_of_a_dgx_are_read(name: str, collective: str, sizes: int) -> None:
    [table] = read_log(CLONE / name)
    assert (table.collective, table.ranks, table.nodes, len(table.measurements)) == (collective, 8, 1, sizes)
    assert table.measurements[-1].size_bytes == 8 * 2**30
