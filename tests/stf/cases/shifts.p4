// Shifts by constants and by fields, also by the width and more.
#include "include/case.p4"

header data_t {
    bit<8> by;
    bit<16> a;
    bit<16> left;
    bit<16> right;
    int<16> signed_right;
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
        headers.data.left = headers.data.a << headers.data.by;
        headers.data.right = headers.data.a >> headers.data.by;
        headers.data.signed_right = (int<16>)headers.data.a >> headers.data.by;
        headers.data.a = (headers.data.a << 4) | (headers.data.a >> 12);
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
