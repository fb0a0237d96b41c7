#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct headers_t { h_t h; }
struct metadata_t { }
struct members_t { @match(nearly) bit<8> a; bool b; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<members_t>(4) known;
    state start { packet.extract(hdr.h); transition select(hdr.h.a, hdr.h.a == 1) { known: accept; default: accept; } }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    @id(7) table t { key = { hdr.h.a: exact; } actions = { @tableonly @defaultonly NoAction; } }
    @id(7) table u { key = { hdr.h.a: exact; } actions = { NoAction; } }
    apply { t.apply(); u.apply(); }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
