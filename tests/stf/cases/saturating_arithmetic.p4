// |+| and |-| stop at the ends of the range, of unsigned and of signed types.
#include "include/case.p4"

header data_t {
    bit<8> a;
    bit<8> b;
    bit<8> sum;
    bit<8> less;
    int<8> c;
    int<8> d;
    int<8> signed_sum;
    int<8> signed_less;
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
    apply {
        standard.egress_spec = 2;
        headers.data.sum = headers.data.a |+| headers.data.b;
        headers.data.less = headers.data.a |-| headers.data.b;
        headers.data.signed_sum = headers.data.c |+| headers.data.d;
        headers.data.signed_less = headers.data.c |-| headers.data.d;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
