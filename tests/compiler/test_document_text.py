"""The JSON document as text: the same document, its upper levels spread over lines."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from weft.compiler.emit_json import document_text
from weft.compiler.emit_json.document import INDENTED_DEPTH

LEAVES = st.none() | st.booleans() | st.integers() | st.text()
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=40)


@given(st.dictionaries(st.text(), VALUES))
def test_reads_back_as_it_was(document: dict[str, Any]) -> None:
    text = document_text(document)
    assert list(json.loads(text).items()) == list(document.items())
    assert text.endswith("\n")


def test_is_indented_as_json_dumps_does_down_to_a_depth() -> None:
    assert INDENTED_DEPTH >= 3
    document = {"tables": [{"name": "t", "id": 1}, {}], "none": [], "program": "p.p4"}
    assert document_text(document) == json.dumps(document, indent=2) + "\n"


def test_what_is_deeper_stays_on_its_line() -> None:
    document: Any = ["deepest", 1]
    for _ in range(INDENTED_DEPTH):
        document = {"inner": document}
    assert '"inner": ["deepest", 1]\n' in document_text(document)
