"""P4Info files that are none: refused with the file's name, whatever is wrong in them."""

from pathlib import Path

import pytest

from tests.refusals import refused
from weft.controller.errors import PipelineError
from weft.controller.pipeline import read_p4info


@pytest.mark.parametrize(
    "text",
    [
        'tables { preamble { id: 1 name: "a" } match_fields { id: 1 name: "x" match_type: 99999999999 } }',
        "tables { preamble { id: 99999999999999999999999 } }",
        'pkg_info { arch: "v1model" } tables { match_fields { match_type: 3000000000 } }',
        "tables {",
        "",
    ],
)
def test_a_file_that_is_no_p4info_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.p4info.txtpb"
    path.write_text(text, encoding="utf-8")
    with refused(PipelineError, place="wrong.p4info.txtpb", problem="nfo"):
        read_p4info(path)


def test_a_file_of_other_bytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wrong.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PipelineError, match=r"wrong\.txt"):
        read_p4info(path)
