// return leaves a control or an action; exit leaves the whole pipeline, from wherever it stands.
#include "include/case.p4"

header data_t {
    bit<8> a;
    bit<8> b;
    bit<8> c;
}

struct headers_t {
    data_t data;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.data);
        transition accept;
    }
}

control Inner(inout bit<8> a, inout bit<8> b) {
    apply {
        if (a == 1) {
            return;
        }
        b = 0x11;
        if (a == 2) {
            exit;
        }
        b = 0x22;
    }
}

CONTROL(Decide) {
    Inner() inner;

    action early() {
        headers.data.c = 0x33;
        if (headers.data.a == 3) {
            return;
        }
        headers.data.c = 0x44;
        if (headers.data.a == 4) {
            exit;
        }
        headers.data.c = 0x55;
    }
    table choose {
        actions = { early; }
        const default_action = early();
    }

    apply {
        standard.egress_spec = 2;
        inner.apply(headers.data.a, headers.data.b);
        choose.apply();
        headers.data.b = headers.data.b + 1;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
