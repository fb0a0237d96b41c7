// nothing to warn of: each read follows a write on every path
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; h_t g; }
struct metadata_t { bit<8> x; }
void get(out bit<8> v) { v = 1; }

parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control C(inout headers_t hdr, inout metadata_t m) { apply { } }
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }

control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    bit<8> shared;
    action one() { shared = 1; }
    action two() { shared = 2; }
    table t { key = { s.ingress_port : exact; } actions = { one; two; } const default_action = two; }
    apply {
        bit<8> x;
        switch (t.apply().action_run) {
            one: { x = 1; }
            default: { x = 2; }
        }
        m.x = x + shared;
        bit<8> y;
        switch (hdr.h.a) {
            0: { y = 1; }
            1:
            2: { exit; }
            default: { y = 3; }
        }
        m.x = y;
        h_t copy = hdr.h;
        if (copy.isValid() && copy.a == 1) { m.x = copy.b; }
        copy.setValid();
        m.x = copy.a;
        bit<8> z;
        z[3:0] = 1;
        m.x = z;
        bit<8> w;
        get(w);
        m.x = w;
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
