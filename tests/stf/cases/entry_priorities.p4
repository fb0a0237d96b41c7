// Entries of the program with priorities: the smallest wins where the table says so; keys of each kind.
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
    action set(bit<8> value) {
        headers.data.c = value;
    }
    table smallest {
        key = {
            headers.data.a: ternary;
            headers.data.b: range;
        }
        actions = { set; }
        largest_priority_wins = false;
        entries = {
            const priority = 20: (1, _): set(1);
            const priority = 10: (0 &&& 0xfe, 5 .. 9): set(2);
            const priority = 30: (_, _): set(3);
        }
    }
    table in_order {
        key = { headers.data.c: ternary; }
        actions = { set; NoAction; }
        const entries = {
            2: set(0x20);
            0 &&& 0xfd: set(0x21);
            3: set(0x30);
        }
        const default_action = NoAction();
    }

    apply {
        standard.egress_spec = 2;
        smallest.apply();
        in_order.apply();
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
