#include <v1model.p4>
header h { bit<8> a; }
control C(inout h x) {
    action one(bit<8> v) { x.a = v; }
    action two(in bit<8> v, bit<8> w) { x.a = v + w; }
    table t {
        key = { x.a : exat; x : exact; }
        actions = { one; two; three; one; }
        default_action = four();
        sise = 10;
    }
    table u { actions = { one; } default_action = one(x.a); size = x.a; }
    table v { key = { x.a: exact; } }
    apply { t.apply(1); if (u.apply().hitt) { } }
}
