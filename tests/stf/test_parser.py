"""STF text to statements."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refusals import refused
from weft.switch.stf.errors import Place, StfError, StfSyntaxError
from weft.switch.stf.parser import parse_file, parse_text
from weft.switch.stf.statements import (
    ActionText,
    Add,
    CheckCounter,
    Expect,
    KeyValue,
    NoPacket,
    Packet,
    Remove,
    SetDefault,
    SwitchCommand,
    Wait,
)

PATH = Path("script.stf")
AT_1 = Place(PATH, 1)


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("packet 3 0a0B 0c  # in", Packet(AT_1, 3, b"\x0a\x0b\x0c")),
        ("expect 3 0A** 0*", Expect(AT_1, 3, "0a**0*", whole=False)),
        ("expect 3 0a $", Expect(AT_1, 3, "0a", whole=True)),
        ("expect 3", Expect(AT_1, 3, None, whole=False)),
        ("expect 3 $", Expect(AT_1, 3, "", whole=True)),
        ("NO_PACKET", NoPacket(AT_1)),
        ("wait", Wait(AT_1)),
        (
            'add c.t 5 "a b".x:0x1*2 s[0].f:0b1* go(p:0x10, 3) = $e',
            Add(
                AT_1,
                "c.t",
                5,
                (("a b.x", KeyValue("0x1*2", 0x102, 0x0F0)), ("s[0].f", KeyValue("0b1*", 2, 1))),
                ActionText("go", (("p", 16), (None, 3))),
                "e",
            ),
        ),
        (
            "add t a:10/8 b:1->9 c:6&&&7 go()",
            Add(
                AT_1,
                "t",
                None,
                (
                    ("a", KeyValue("10/8", 10, prefix_length=8)),
                    ("b", KeyValue("1->9", 1, high=9)),
                    ("c", KeyValue("6&&&7", 6, mask=7)),
                ),
                ActionText("go", ()),
                None,
            ),
        ),
        ("setdefault t c.go(1)", SetDefault(AT_1, "t", ActionText("c.go", ((None, 1),)))),
        ("remove ALL", Remove(AT_1, None)),
        ("remove $e", Remove(AT_1, "e")),
        ("check_counter c($e)", CheckCounter(AT_1, "c", "e", "packets", "==", 0)),
        ("check_counter c(10) bytes >= 0x20", CheckCounter(AT_1, "c", 10, "bytes", ">=", 32)),
        ("mc_node_create 400 6 7", SwitchCommand(AT_1, "mc_node_create", "", (400, 6, 7))),
        ("register_write c.r 5 100", SwitchCommand(AT_1, "register_write", "c.r", (5, 100))),
        (
            "meter_set_rates m 2 0.5:4 1:5",
            SwitchCommand(AT_1, "meter_set_rates", "m", (2,), ((0.5, 4), (1.0, 5))),
        ),
    ],
)
def test_each_kind_of_line(text, statement):
    assert parse_text(text, PATH) == [statement]


def test_places_count_comments_and_empty_lines():
    statements = parse_text("# one\n\n  wait # three\r\nno_packet\n", PATH)
    assert statements == [Wait(Place(PATH, 3)), NoPacket(Place(PATH, 4))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pakket 1 00", "unknown statement 'pakket'; did you mean 'packet'?"),
        ("packet", "packet: expected a port (decimal), the line ends"),
        ("packet x 00", "packet: expected a port (decimal), found 'x'"),
        ("packet 512 00", "port 512 is out of range (valid: 0 to 511)"),
        ("expect " + "9" * 5000, "a number of 5000 digits is too long (valid: to 300)"),
        (
            "mirroring_add 0x8000000000000000 1",
            "0x8000000000000000 is out of range (valid: to 0x7fffffffffffffff)",
        ),
        ("packet 1 000", "packet: 3 hexadecimal digits are no whole bytes"),
        ("packet 1 0*", "packet: '*' is no hexadecimal digit"),
        ("expect 1 0$0", "expect: '$' is neither a hexadecimal digit nor '*' nor a closing '$'"),
        ("add", "expected a table, the line ends"),
        ("add t 5", "expected a key field or an action, the line ends"),
        ("add t a:b go()", "expected a value, found 'b'"),
        ("add t a:1 go(1", "expected ',', the line ends"),
        ("add t a:1 go(1*)", "column 15: nothing begins with '*'"),
        ("add t a:1 go(0x1*)", "0x1*: '*' stands only in keys and expected packets"),
        ("add t a:1 go() = 5", "expected an id for the entry, found '5'"),
        ("add t a:1/ go()", "expected a number after '/', found 'go'"),
        ("setdefault t go", "expected '(', the line ends"),
        ("remove", "expected 'all' or an entry's id, the line ends"),
        ("wait 5", "expected the end of the line, found '5'"),
        ("check_counter c(1) drops == 1", "a counter counts packets or bytes, not 'drops'"),
        ("check_counter c(1) bytes = 1", "'=' is no comparison: == != < <= > >="),
        ("mirroring_add 5", "expected a number, the line ends"),
        ("mc_node_create", "expected a number, the line ends"),
        ("register_write r 1 2 3", "expected the end of the line, found '3'"),
        ("meter_set_rates m 1 5", "expected ':', the line ends"),
        ("wait ;", "column 6: nothing begins with ';'"),
    ],
)
def test_errors_name_file_and_line(text, message):
    with pytest.raises(StfSyntaxError) as error:
        parse_text(f"# first\n{text}\nwait", PATH)
    assert str(error.value) == f"script.stf:2: {message}"


def test_a_file_that_is_no_text_is_refused(tmp_path):
    script = tmp_path / "binary.stf"
    script.write_bytes(b"\xff\xfe")
    with refused(StfError, place="binary.stf", problem="cannot be read"):
        parse_file(script)


_WORDS = ["add", "t", "a", ":", "0x1*", "0b1", "7", "1.5", "go", "(", ")", ",", "=", "$e", '"q', "\n"]
_WORDS += ["packet", "expect", "$", "remove", "all", "check_counter", "bytes", "==", "meter_set_rates", "["]


@given(st.one_of(st.text(), st.lists(st.sampled_from(_WORDS)).map(" ".join)))
def test_any_text_is_parsed_or_refused_with_its_place(text):
    try:
        statements = parse_text(text, PATH)
    except StfSyntaxError as refusal:
        message = str(refusal)
    else:
        message = None
        assert all(1 <= statement.place.line <= text.count("\n") + 1 for statement in statements)
    assert message is None or message.startswith("script.stf:")
