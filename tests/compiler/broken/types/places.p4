// Calls, types and instances where they cannot stand.
#include <core.p4>
#include <v1model.p4>
extern Base { Base(); abstract bit<8> f(in bit<8> v); }
bit<8> late(in bit<8> v = 3, in bit<8> w) { return v + w; }
control Sub(inout bit<8> x) { apply { } }
const bit<8>[3] LIST = { 1, 2, 3 };
control C(inout bit<8> x, inout int<8> s, inout bool b) {
    action once() { Sub() inner; }
    action applies() { first.apply(); }
    table first { actions = { NoAction; } }
    table second { actions = { once; } default_action = once(); }
    action later() { second.apply(); }
    apply {
        x = bit_t;
        x = Sub;
        b = b + b;
        b = -b;
        s = s ++ b;
        x = x.nothing;
        x[9+:2] = 1;
        x = (bit<8>)second;
        for (bit<4> i in 1 .. 3) { x = x + (bit<8>)i; }
        for (bit<4> i in 8w1 .. 8w3) { x = x + 1; }
    }
}
parser P(packet_in packet, out bit<8> v) {
    state start { first(); C.apply(v); transition accept; }
}
bit<8> calls(inout bit<8> v) { NoAction(); return v; }
