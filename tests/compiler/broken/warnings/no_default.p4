// what no case of a select matches is rejected
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; h_t g; }
struct metadata_t { bit<8> x; }

parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition select(hdr.h.a) { 0: complete; 1 &&& 1: accept; } }
    state complete { transition select(hdr.h.b[0:0]) { 0: accept; 1: truth; } }
    state truth { transition select(hdr.h.b == 0) { true: accept; false: rejecting; } }
    state rejecting { transition select(hdr.h.b) { 0: reject; 1: reject; } }
}

control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control C(inout headers_t hdr, inout metadata_t m) { apply { } }
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }

control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    apply { }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
