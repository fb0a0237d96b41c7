#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
enum e_t { A, B }
control Sub(inout bit<8> v) { apply { v = 1; } }
parser Other(packet_in p) { state start { transition accept; } }
bit<8> f(in bit<8> v) { exit; return; }
control C(inout h_t h, inout h_t[2] stack, in e_t e) {
    Sub() sub;
    Other() other;
    action acts() { sub.apply(h.a); t.apply(); return; }
    table t { key = { h.a : exact; } actions = { acts; NoAction; } }
    apply {
        if (h.a) { }
        break;
        continue;
        for (bit<8> i = 0; i; i = i + 1) { }
        for (bit<8> i in h) { }
        for (bool i in 1 .. 3) { }
        switch (h) { default: { } }
        switch (h.a) { default: { } 1: { } }
        switch (h.a) { 1: { } 1: { } h.a: { } }
        switch (t.apply().action_run) { missing: { } acts: { } acts: { } 1: { } }
        switch (e) { e_t.A: { } e_t.C: { } }
        h.a += true;
        other.apply();
        return h.a;
    }
}
parser P(packet_in p, out h_t h) {
    state start { return; transition accept; }
    state next { exit; transition next; }
}
