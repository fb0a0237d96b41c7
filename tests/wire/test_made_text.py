"""Tables of docs/spec and layouts of the dissector are what `python -m weft.wire` makes."""

from pathlib import Path

import pytest

from weft.wire import HEADERS, Field, Header, Repeated, markdown
from weft.wire.made_text import files_with_parts, part_names, with_parts_made

ROOT = Path(__file__).parents[2]
FILES = list(files_with_parts(ROOT))
ADVICE = "a description in weft/wire/ has changed: run python -m weft.wire"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_made_parts_are_current(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == with_parts_made(text, str(path)), ADVICE


def test_every_header_of_weft_s_own_has_its_table_where_it_is_specified() -> None:
    names = {str(path.relative_to(ROOT)): part_names(path.read_text(encoding="utf-8")) for path in FILES}
    own = [each for each in HEADERS.values() if each.source.startswith("docs/spec")]
    assert own
    without = [each.name for each in own if each.name not in names[each.source.partition(",")[0]]]
    assert without == ["ParameterBlock"]  # words without a meaning of their own


def test_a_part_of_an_unknown_name_is_refused() -> None:
    text = "<!-- made from weft/wire: IntShin -->\n<!-- end -->\n"
    with pytest.raises(ValueError, match=r"frames\.md: part 'IntShin' \(valid: .*IntShim"):
        with_parts_made(text, "frames.md")


def test_a_table_has_widths_values_units_and_lists() -> None:
    header = Header(
        "Sample",
        "Sample",
        "none",
        (
            Field("version", 4, default=3, is_fixed=True),
            Field("kind", 4, values={0: "pull", 1: "put_back"}, notes={1: "late"}),
            Field("target", 16, "of the packet", values={0xFFFF: "all"}, is_closed=False),
            Field("depth", 8, "of the queue", unit_bytes=80, source="RFC 1"),
            Repeated("steps", Field("step", 16), 2, "taken"),
            Repeated("rest", Field("byte", 8), 0, "of it", counted_by="depth"),
        ),
    )
    assert markdown.table_of(header).splitlines()[2:] == [
        "| version | 4 | 3 |",
        "| kind | 4 | 0: pull, 1: put-back (late) |",
        "| target | 16 | of the packet; 0xFFFF: all |",
        "| depth | 8 | of the queue; in units of 80 bytes; RFC 1 |",
        "| steps[2] | 16 each | taken |",
        "| rest[depth] | 8 each | of it |",
    ]
