"""P4Data of digests (P4Runtime §8.4)."""

from __future__ import annotations

import pytest
from finsy.proto import p4d, p4t
from google.protobuf import text_format

from tests.refusals import refused
from weft.switch.p4runtime.data import encode_digest
from weft.switch.p4runtime.errors import RequestError

TYPES = text_format.Parse(
    """
    structs { key: "inner" value { members { name: "port" type_spec { bitstring { bit { bitwidth: 9 } } } }
                                   members { name: "known" type_spec { bool {} } } } }
    structs { key: "outer" value { members { name: "inner" type_spec { struct { name: "inner" } } }
                                   members { name: "delta" type_spec { bitstring { int { bitwidth: 8 } } } } } }
    """,
    p4t.P4TypeInfo(),
)
OUTER = p4t.P4DataTypeSpec(struct=p4t.P4NamedType(name="outer"))


def test_a_digest_of_nested_structs() -> None:
    expected = """struct { members { struct { members { bitstring: "\\001\\001" } members { bool: true } } }
                           members { bitstring: "\\377" } }"""
    assert encode_digest([257, 1, 255], [9, 1, 8], OUTER, TYPES) == text_format.Parse(expected, p4d.P4Data())


@pytest.mark.parametrize(("count", "what"), [(2, {"problem": "fewer"}), (4, {"problem": "more"})])
def test_a_digest_that_does_not_fit_its_type(count: int, what: dict[str, str]) -> None:
    with refused(RequestError, **what):
        encode_digest([1] * count, [8] * count, OUTER, TYPES)
