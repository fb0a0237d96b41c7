#include <core.p4>
#include <v1model.p4>
control C(inout bit<8> x) {
    action set(in bit<8> from) { x = from; }
    table first { actions = { NoAction; } }
    table second {
        key = { x: exact; }
        actions = { set(first.apply().hit ? x : 1); NoAction; }
    }
    apply { second.apply(); }
}
