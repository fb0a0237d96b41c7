#include <core.p4>
header h { bit<8> a; bit<8> b; }
control C(inout h x) {
    action one(bit<8> v) { x.a = v; }
    action other() { }
    table t {
        key = { x.a: exact; x.b: ternary; }
        actions = { one; }
        const entries = {
            1: one(1);
            (1, 2): other();
            (1, 2 &&& 16w3): one(1);
            (x.a, 2): one();
            (true, _): one(2);
        }
    }
    apply { switch (t.apply().action_run) { one: {} one: {} other: {} } }
}
