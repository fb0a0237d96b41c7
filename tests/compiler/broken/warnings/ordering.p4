// arguments that share what the call writes
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; h_t g; }
struct metadata_t { bit<8> x; }
void swap(inout bit<8> a, inout bit<8> b) { bit<8> t = a; a = b; b = t; }
void both(inout h_t h, out bit<8> v) { h.a = 1; v = 2; }

parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control C(inout headers_t hdr, inout metadata_t m) { apply { } }
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }

control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    apply {
        swap(hdr.h.a, hdr.h.a);
        both(hdr.h, hdr.h.b);
        swap(hdr.h.a, hdr.h.b);
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
