#include <core.p4>
#include <v1model.p4>
action global() { }
control C(inout bit<8> x) {
    action set(in bit<8> from, bit<8> data) { x = from + data; }
    action global() { }
    table t {
        key = { x: exact; }
        actions = { set(x); @tableonly global; @defaultonly NoAction; }
        default_action = set(x + 1, 3);
    }
    table u {
        key = { x: exact; }
        actions = { set(x); @tableonly global; @defaultonly NoAction; }
        default_action = .global();
        entries = { priority = 3: 1: NoAction(); }
    }
    table v {
        key = { x: exact; }
        actions = { @tableonly global; }
        default_action = global();
    }
    apply { t.apply(); u.apply(); v.apply(); }
}
