// what the types decide
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
    apply {
        if (hdr.h.a < 0) { m.x = 1; }
        if (hdr.h.a >= 0) { m.x = 2; }
        if (hdr.h.a > 255) { m.x = 3; }
        if (255 >= hdr.h.a) { m.x = 4; }
        if (0 > hdr.h.a) { m.x = 5; }
        if (hdr.h.a == hdr.h.a) { m.x = 6; }
        if ((int<8>)hdr.h.a < -128) { m.x = 7; }
        if ((int<8>)hdr.h.a < 0) { m.x = 8; }
        m.x = hdr.h.a ^ hdr.h.a;
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
