// Headers are equal if both are invalid, or both valid with equal fields; copies take validity along.
#include "include/case.p4"

header item_t {
    bit<8> v;
    bit<8> w;
}

header result_t {
    bit<8> which;
    bit<8> same;
}

struct headers_t {
    result_t result;
    item_t   a;
    item_t   b;
    item_t   c;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.result);
        transition select(headers.result.which) {
            0: accept;
            1: first;
            default: both;
        }
    }
    state first {
        packet.extract(headers.a);
        transition accept;
    }
    state both {
        packet.extract(headers.a);
        packet.extract(headers.b);
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        headers.result.same = 0;
        if (headers.a == headers.b) {
            headers.result.same = 1;
        }
        if (headers.a != headers.b) {
            headers.result.same = headers.result.same + 2;
        }
        headers.c = headers.b;
        if (headers.c == headers.b) {
            headers.result.same = headers.result.same + 4;
        }
        headers.b.setInvalid();
        if (headers.c.isValid()) {
            headers.result.same = headers.result.same + 8;
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
