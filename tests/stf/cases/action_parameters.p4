// Actions with directed parameters called by the program, and with action data given by a table.
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
    action move(in bit<8> from, out bit<8> to, inout bit<8> count) {
        to = from;
        count = count + 1;
    }
    action send(in bit<8> extra, bit<9> port, bit<8> value) {
        standard.egress_spec = port;
        headers.data.c = value + extra;
    }
    table choose {
        key = { headers.data.a: exact; }
        actions = { send(headers.data.b); NoAction; }
        const entries = {
            1: send(headers.data.b, 4, 0x20);
        }
        const default_action = NoAction();
    }

    apply {
        standard.egress_spec = 2;
        choose.apply();
        move(headers.data.a, headers.data.b, headers.data.c);
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
