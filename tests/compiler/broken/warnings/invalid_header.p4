// fields of headers that are not valid, or may not be
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; h_t g; }
struct metadata_t { bit<8> x; }

parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start {
        m.x = hdr.g.a;
        p.extract(hdr.h);
        transition select(hdr.h.a) { 0: second; default: last; }
    }
    state second { p.extract(hdr.g); transition last; }
    state last { m.x = hdr.g.b; transition accept; }
}

control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control C(inout headers_t hdr, inout metadata_t m) { apply { } }
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }

control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    apply {
        h_t local;
        m.x = local.a;
        local.b = 1;
        local.setValid();
        m.x = local.a;
        hdr.h.setInvalid();
        m.x = hdr.h.a;
        if (hdr.g.isValid()) { m.x = hdr.g.a; } else { m.x = hdr.g.b; }
        m.x = hdr.g.a;
        if (!hdr.g.isValid() || hdr.g.a == 0) { return; }
        if (m.x == 0) { hdr.g.setInvalid(); }
        hdr.g.a = 2;
        hdr.g = {#};
        hdr.g.a = 3;
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
