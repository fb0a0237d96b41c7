// switch on the action that a table ran: fall-through labels, default, hit and miss.
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
    action one() { }
    action two() { }
    action three() { }
    table choose {
        key = { headers.data.a: exact; }
        actions = { one; two; three; NoAction; }
        const entries = {
            1: one();
            2: two();
            3: three();
        }
        const default_action = NoAction();
    }
    table again {
        key = { headers.data.b: exact; }
        actions = { NoAction; }
        const entries = {
            1: NoAction();
        }
        const default_action = NoAction();
    }

    apply {
        standard.egress_spec = 2;
        switch (choose.apply().action_run) {
            one:
            two: {
                headers.data.c = 0x12;
            }
            three: {
                headers.data.c = 0x33;
            }
            default: {
                headers.data.c = 0xff;
            }
        }
        if (again.apply().hit) {
            standard.egress_spec = 3;
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
