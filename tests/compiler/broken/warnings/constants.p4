// shifts that lose all bits, numbers that do not fit, keys without effect
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
    table constant_key { key = { 8w3 : exact; } actions = { NoAction; } }
    table no_key { actions = { NoAction; } size = 16; }
    table fixed {
        key = { hdr.h.a : exact; }
        actions = { NoAction; }
        const entries = { 1 : NoAction(); }
        size = 16;
    }
    apply {
        constant_key.apply();
        no_key.apply();
        fixed.apply();
        m.x = hdr.h.a << 8;
        m.x = hdr.h.a >> 9;
        m.x = (bit<8>)((int<8>)hdr.h.a >> 8);
        m.x = 256;
        m.x = 8w257;
        m.x = -8w1;
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
