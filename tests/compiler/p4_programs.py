"""P4 programs for tests: a v1model skeleton around a few lines, and a switch to run it on."""

from __future__ import annotations

from pathlib import Path

from weft.compiler import CompileResult, compile_file
from weft.switch.bmv2json import load_program
from weft.switch.oracle.switch import OracleSwitch

SKELETON = """
#include <core.p4>
#include <v1model.p4>
{declarations}
header data_t {{ bit<8> a; bit<8> b; bit<16> c; bit<32> d; }}
header small_t {{ bit<8> v; }}
struct headers_t {{ data_t data; small_t[3] items; small_t extra; {headers} }}
struct metadata_t {{ bit<8> x; bit<16> y; bool flag; {metadata} }}
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {{
    {parser}
}}
control V(inout headers_t hdr, inout metadata_t meta) {{ apply {{ {verify} }} }}
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {{
    {locals}
    apply {{
        standard_metadata.egress_spec = 2;
        {apply}
    }}
}}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {{
    apply {{ {egress} }}
}}
control U(inout headers_t hdr, inout metadata_t meta) {{ apply {{ {update} }} }}
control D(packet_out packet, in headers_t hdr) {{
    apply {{ packet.emit(hdr.data); packet.emit(hdr.items); packet.emit(hdr.extra); {deparser} }}
}}
V1Switch(P(), V(), I(), E(), U(), D()) main;
"""
PARSER = "state start { packet.extract(hdr.data); transition accept; }"
PARTS = ("declarations", "headers", "metadata", "verify", "locals", "apply", "egress", "update", "deparser")


def program_text(**parts: str) -> str:
    """The skeleton with some of its parts filled in."""
    filled = dict.fromkeys(PARTS, "") | {"parser": PARSER}
    unknown = set(parts) - set(filled)
    assert not unknown, f"unknown parts {unknown}"
    return SKELETON.format(**(filled | parts))


def compile_text(folder: Path, text: str) -> CompileResult:
    """Compile a program from its text."""
    path = folder / "program.p4"
    path.write_text(text, encoding="utf-8")
    return compile_file(path)


def switch_for(result: CompileResult) -> OracleSwitch:
    """A switch that runs the compiled program."""
    switch = OracleSwitch()
    switch.load(load_program(result.json_text()))
    return switch


def run(folder: Path, packet: str, **parts: str) -> list[tuple[int, str]]:
    """Compile, send one packet (hex) into port 1, return what leaves: (port, hex)."""
    switch = switch_for(compile_text(folder, program_text(**parts)))
    return [(output.port, output.data.hex()) for output in switch.process(1, bytes.fromhex(packet))]
