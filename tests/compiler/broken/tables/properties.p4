#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; int<8> s; varbit<8> v; }
action outside() { }
control C(inout h_t h) {
    action a(bit<8> data) { h.a = data; }
    action b(in bit<8> v) { h.a = v; }
    @tableonly action only() { }
    @defaultonly action fallback() { }
    table none { key = { h.a : exact; } }
    table wrong_key { key = { 1 + 2 : exact; h : exact; h.v : exact; } actions = { NoAction; } }
    table wrong_size { actions = { NoAction; } size = true; }
    table unknown_default { actions = { NoAction; } default_action = a(1); }
    table bad_default { actions = { a; only; } default_action = only(); }
    table missing_data { actions = { a; } default_action = a; }
    table extra_data { actions = { a; } default_action = a(1, 2); }
    table no_binding { actions = { b; } }
    table run_time { actions = { a; } default_action = a(h.a); }
    table not_an_action { actions = { h; 3; } default_action = 3; }
    table others { actions = { outside; b(1); } default_action = b(2); }
    table no_key { actions = { NoAction; } entries = { 1 : NoAction(); } }
    apply { }
}
