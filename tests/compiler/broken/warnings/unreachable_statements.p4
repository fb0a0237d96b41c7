// what stands behind return, exit and the like
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; h_t g; }
struct metadata_t { bit<8> x; }

parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control C(inout headers_t hdr, inout metadata_t m) { apply { } }
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }

control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    action leaves() { exit; m.x = 1; }
    apply {
        if (hdr.h.a == 0) { leaves(); m.x = 9; }
        for (bit<8> i = 0; i < 4; i = i + 1) {
            if (i == 1) { break; m.x = 1; }
            if (i == 2) { continue; m.x = 2; }
        }
        if (hdr.h.a == 1) { return; } else { exit; }
        m.x = 3;
        m.x = 4;
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
