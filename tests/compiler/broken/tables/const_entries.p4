#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; bit<16> b; bool f; }
control C(inout h_t h) {
    action a(bit<8> data) { h.a = data; }
    @defaultonly action fallback() { }
    table t {
        key = { h.a : exact; h.b : ternary; }
        actions = { a; fallback; NoAction; }
        const entries = {
            (1, 2) : a();
            (1) : a(1);
            (1, 2, 3) : a(1);
            (true, 2) : a(1);
            (h.a, 2) : a(1);
            (1, 2) : fallback();
            (1, 2) : missing();
            (1, 2) : a(h.a);
        }
    }
    table exact_only {
        key = { h.a : exact; }
        actions = { NoAction; }
        entries = { priority = 3 : 1 : NoAction(); const 2 : NoAction(); }
    }
    apply { t.apply(); exact_only.apply(); }
}
