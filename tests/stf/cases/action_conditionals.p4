// if and else within actions, nested, and conditions on action data.
#include "include/case.p4"

header data_t {
    bit<8> a;
    bit<8> b;
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
    action classify(bit<8> limit, bit<9> port) {
        standard.egress_spec = port;
        if (headers.data.a < limit) {
            headers.data.b = 1;
        } else {
            if (headers.data.a == limit) {
                headers.data.b = 2;
                standard.egress_spec = 5;
            } else if (limit > 4) {
                headers.data.b = 3;
            }
        }
    }
    table choose {
        key = { headers.data.b: ternary; }
        actions = { classify; }
        const entries = {
            0x10 &&& 0xf0: classify(9, 3);
            _: classify(2, 2);
        }
    }

    apply {
        choose.apply();
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
