"""Text of files in the repository that is made from the descriptions of headers, between markers.

In Markdown such a part stands between `<!-- made from weft/wire: IntShim -->` and `<!-- end -->`, in Lua between
`-- made from weft/wire: layouts` and `-- end`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from weft.errors import InvalidValueError
from weft.wire import HEADERS, markdown, wireshark
from weft.wire.headers import uet
from weft.wire.headers.mrc import (
    CC_STATE,
    EETH,
    ERTH,
    METH,
    MRC_BTH,
    MRC_OPCODES,
    NETH,
    PETH,
    SETH,
    TSETH,
)
from weft.wire.headers.roce import (
    AETH,
    ATOMIC_ACK_ETH,
    ATOMIC_ETH,
    BTH,
    CNP_PADDING,
    DETH,
    ICRC,
    IETH,
    IMMEDIATE,
    OPCODES,
    RETH,
)

_OF_ROCE = (BTH, DETH, RETH, ATOMIC_ETH, AETH, ATOMIC_ACK_ETH, IMMEDIATE, IETH, CNP_PADDING, ICRC)
_OF_MRC = (MRC_BTH, METH, TSETH, SETH, CC_STATE, NETH, PETH, ERTH, EETH)
_PART = re.compile(
    r"^(?P<begin>(?:<!--|--) made from weft/wire: (?P<name>.*?)(?: -->)?\n)(?P<made>.*?)"
    r"(?P<end>(?:<!-- end -->|-- end)\n)",
    re.MULTILINE | re.DOTALL,
)


def _makers() -> Mapping[str, Callable[[], str]]:
    def table(name: str) -> Callable[[], str]:
        return lambda: f"\n{markdown.table_of(HEADERS[name])}\n"

    return {
        **{name: table(name) for name in HEADERS},
        "headers of RoCEv2": lambda: "\n" + "\n".join(map(markdown.section_of, _OF_ROCE)) + "\n",
        "opcodes": lambda: f"\n{markdown.opcode_table(OPCODES)}\n",
        "headers of MRC": lambda: "\n" + "\n".join(map(markdown.placed_section_of, _OF_MRC)) + "\n",
        "opcodes of MRC": lambda: f"\n{markdown.opcode_table(MRC_OPCODES)}\n",
        "packet types of UET": lambda: f"\n{markdown.packet_type_table(uet.PACKET_TYPES)}\n",
        "headers of UET": lambda: "\n" + "\n".join(map(markdown.placed_section_of, uet.HEADERS)) + "\n",
        "values of UET": lambda: f"\n{markdown.value_table(uet.NAMED_VALUES)}\n",
        "constants": wireshark.constants,
        "layouts": wireshark.layouts,
    }


def part_names(text: str) -> list[str]:
    """Return the names of the parts that are made."""
    return [part["name"] for part in _PART.finditer(text)]


def with_parts_made(text: str, place: str) -> str:
    """Return a file's text with its parts made anew. Raises ValueError for a part of an unknown name."""
    makers = _makers()

    def made(part: re.Match[str]) -> str:
        name = part["name"]
        if name not in makers:
            raise InvalidValueError(f"{place}: part {name!r}", valid=makers)
        return part["begin"] + makers[name]() + part["end"]

    return _PART.sub(made, text)


def files_with_parts(root: Path) -> Iterator[Path]:
    """Return the files below a repository's root that have such parts."""
    for path in sorted([*root.glob("docs/spec/*.md"), *root.glob("docs/wireshark/*.lua")]):
        if part_names(path.read_text(encoding="utf-8")):
            yield path
