// reads before writes, along branches, loops, actions and tables
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> a; bit<8> b; }
struct headers_t { h_t h; h_t g; }
struct metadata_t { bit<8> x; }
struct pair_t { bit<8> left; bit<8> right; }
void take(in pair_t pair) { log_msg("{}", { pair.left }); }

parser P(packet_in p, out headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}

control V(inout headers_t hdr, inout metadata_t m) { apply { } }
control C(inout headers_t hdr, inout metadata_t m) { apply { } }
control E(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }

control I(inout headers_t hdr, inout metadata_t m, inout standard_metadata_t s) {
    bit<8> shared;
    action reads() { m.x = shared; }
    action writes() { shared = 1; }
    table either { actions = { writes; NoAction; } default_action = NoAction; }
    table surely { key = { s.ingress_port : exact; } actions = { writes; } const default_action = writes; }
    table hits { key = { s.ingress_port : exact; } actions = { NoAction; } }
    apply {
        bit<8> never;
        bit<8> sometimes;
        bit<8> always;
        pair_t pair;
        m.x = never;
        if (hdr.h.a == 0) { sometimes = 1; }
        m.x = sometimes;
        if (hdr.h.a == 0) { always = 1; } else if (hdr.h.b == 0) { always = 2; } else { return; }
        m.x = always;
        pair.left = 1;
        m.x = pair.left + pair.right;
        take(pair);
        either.apply();
        reads();
        surely.apply();
        reads();
        bit<8> looped;
        for (bit<8> i = 0; i < 4; i = i + 1) {
            if (i == 2) { continue; }
            m.x = looped;
            looped = i;
        }
        bit<8> by_hit;
        if (hits.apply().hit) { by_hit = 1; }
        m.x = by_hit;
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
