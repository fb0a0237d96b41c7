// out parameters without a value
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; h_t g; }
struct metadata_t { bit<8> x; }
control sub(out bit<8> given, in bit<8> when) { apply { if (when == 0) { return; } given = 1; } }
void never(out bit<8> v) { }
bit<8> early(out bit<8> v, in bit<8> w) { if (w == 0) { v = 1; return 1; } v = 2; return 2; }

parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control C(inout headers_t hdr, inout metadata_t m) { apply { } }
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }

control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    sub() instance;
    action acts(out bit<8> v) { if (hdr.h.a == 0) { v = 1; } }
    apply {
        bit<8> v;
        instance.apply(v, hdr.h.a);
        m.x = v;
        acts(v);
        m.x = v;
        never(v);
        m.x = v;
        m.x = early(v, 1) + v;
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
