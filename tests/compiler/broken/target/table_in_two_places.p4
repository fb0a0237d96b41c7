#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<8> b; }
struct headers { h_t h; h_t[2] s; }
struct meta { bit<8> x; }
parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control V(inout headers h, inout meta m) { apply {  } }
control I(inout headers h, inout meta m, inout standard_metadata_t s) {
    table t { key = { h.h.a: exact; } actions = { NoAction; } }
    apply { if (m.x == 1) { t.apply(); h.h.b = 1; } else { t.apply(); h.h.b = 2; } }
}
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply { } }
control U(inout headers h, inout meta m) { apply {  } }
control D(packet_out p, in headers h) { apply {  } }
V1Switch(P(), V(), I(), E(), U(), D()) main;
