// states that nothing leads to, that never accept, that reject silently
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; h_t g; }
struct metadata_t { bit<8> x; }

parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start {
        p.extract(hdr.h);
        transition select(hdr.h.a) {
            0: round;
            1: silent;
            2: pointless;
            default: accept;
            3: accept;
        }
    }
    state round { transition select(hdr.h.b) { 0: round; default: round_again; } }
    state round_again { transition round; }
    state silent { m.x = 1; }
    state pointless { transition select(hdr.h.a) { default: accept; } }
    state orphan { transition accept; }
}

control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control C(inout headers_t hdr, inout metadata_t m) { apply { } }
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }

control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    apply { }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
