// A field of an invalid header counts as 0 in a key, even after an assignment to it (as BMv2 has it).
#include "include/case.p4"

header data_t {
    bit<8> a;
}

header absent_t {
    bit<8> b;
}

struct headers_t {
    data_t   data;
    absent_t absent;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.data);
        transition select(headers.data.a) {
            1: both;
            default: accept;
        }
    }
    state both {
        packet.extract(headers.absent);
        transition accept;
    }
}

CONTROL(Decide) {
    action send(bit<9> port) {
        standard.egress_spec = port;
    }
    table choose {
        key = { headers.absent.b: ternary; }
        actions = { send; }
        const entries = {
            0: send(2);
            7: send(3);
            _: send(4);
        }
    }

    apply {
        headers.absent.b = 7;
        choose.apply();
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
