// at most one header of a union is valid
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; }
header_union u_t { h_t one; h_t two; }
struct headers_t { u_t u; h_t h; }
struct metadata_t { bit<8> x; }

parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start {
        p.extract(hdr.u.one);
        p.extract(hdr.u.two);
        m.x = hdr.u.one.a;
        m.x = hdr.u.two.a;
        hdr.u.one = hdr.u.two;
        m.x = hdr.u.two.a;
        transition accept;
    }
}

control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control C(inout headers_t hdr, inout metadata_t m) { apply { } }
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }

control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    apply { }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
