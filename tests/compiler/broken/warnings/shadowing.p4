// declarations that hide others
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; h_t g; }
struct metadata_t { bit<8> x; }
action helper() { }

parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control C(inout headers_t hdr, inout metadata_t m) { apply { } }
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }

control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    bit<8> x;
    action helper(bit<8> x) { m.x = x; }
    table t { key = { hdr.h.a : exact; } actions = { helper; NoAction; } }
    apply {
        x = 1;
        bit<8> m = x;
        { bit<8> m = 3; hdr.h.a = m; }
        hdr.h.b = m;
        t.apply();
        .helper();
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
