// Default actions: of the program, constant, and set by the control plane.
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

CONTROL(Decide) {
    action set_a(bit<8> value) {
        headers.data.a = value;
    }
    action set_b(bit<8> value) {
        headers.data.b = value;
    }
    action set_c(bit<8> value) {
        headers.data.c = value;
    }
    table given {
        key = { headers.data.a: exact; }
        actions = { set_a; }
        default_action = set_a(0x0a);
    }
    table constant {
        actions = { set_b; }
        const default_action = set_b(0x0b);
    }
    table changed {
        key = { headers.data.a: exact; }
        actions = { set_c; NoAction; }
    }

    apply {
        standard.egress_spec = 2;
        changed.apply();
        given.apply();
        constant.apply();
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
