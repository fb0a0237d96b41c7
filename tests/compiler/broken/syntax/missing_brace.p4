#include <core.p4>
#include <v1model.p4>

// One '}' is missing in an action, one in an apply block, where only the end of the control can tell.
control C(inout bit<8> v, inout standard_metadata_t sm) {
    action a() {
        v = 1;
    action b() {
        mark_to_drop(sm);
    }
    table t {
        key = { v: exact; }
        actions = { a; b; }
    }
    apply {
        if (v == 1) {
            t.apply();
    }
}

control D(inout bit<8> v) {
    apply {
        v = 1
    }
}
