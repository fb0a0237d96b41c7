"""Programs for the tests of the compiler's messages, options and cache."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the helpers beside the tests, in importlib mode

PROGRAM = """\
#include <core.p4>
#include <v1model.p4>
#include "types.p4"
struct metadata_t { bit<8> value; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.first); transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = PORT; hdr.first.a = 300; }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.first); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""

TYPES = """\
#define PORT 3
header first_t { bit<8> a; }
struct headers_t { first_t first; }
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program of two files with one warning: 300 does not fit bit<8>."""
    (tmp_path / "types.p4").write_text(TYPES)
    path = tmp_path / "program.p4"
    path.write_text(PROGRAM)
    return path
