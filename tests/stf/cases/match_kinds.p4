// exact, lpm, ternary, range and optional keys, of fields, of validity, of expressions and of metadata.
#include "include/case.p4"

header data_t {
    bit<8>  which;
    bit<32> a;
}

header more_t {
    bit<8> b;
}

struct headers_t {
    data_t data;
    more_t more;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.data);
        transition select(headers.data.which) {
            0x10 &&& 0xf0: more;
            default: accept;
        }
    }
    state more {
        packet.extract(headers.more);
        transition accept;
    }
}

CONTROL(Decide) {
    action send(bit<9> port) {
        standard.egress_spec = port;
    }
    table longest {
        key = { headers.data.a: lpm; }
        actions = { send; }
        default_action = send(9);
    }
    table several {
        key = {
            headers.more.isValid(): exact;
            headers.data.a[15:8] + 1: ternary @name("sum");
            standard.ingress_port: range;
            headers.data.which: optional @name("which");
        }
        actions = { send; }
        default_action = send(8);
    }

    apply {
        if (headers.data.which == 0) {
            longest.apply();
        } else {
            several.apply();
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
