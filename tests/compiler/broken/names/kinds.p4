#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
const bit<8> c = 1;
control C(inout h_t h) {
    table t { actions = { c; NoAction; } }
    apply { h.a = h_t; h.a = C; c(); h_t x = h_t; t = h; accept = 1; NoAction = 2; }
}
control D() { D() d; apply { } }
struct loop_t { loop_t inner; }
