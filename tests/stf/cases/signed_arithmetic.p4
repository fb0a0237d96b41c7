// Signed numbers: comparison, shifts, widening and narrowing, negation, wrapping around.
#include "include/case.p4"

header data_t {
    int<8> a;
    int<8> b;
    int<16> wide;
    bit<8> compared;
    int<8> shifted;
    int<8> negated;
    int<8> product;
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
        headers.data.wide = (int<16>)headers.data.a;
        headers.data.compared = 0;
        if (headers.data.a < headers.data.b) {
            headers.data.compared = 1;
        }
        if ((bit<8>)headers.data.a < (bit<8>)headers.data.b) {
            headers.data.compared = headers.data.compared + 2;
        }
        headers.data.shifted = headers.data.a >> 2;
        headers.data.negated = -headers.data.a;
        headers.data.product = headers.data.a * headers.data.b;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
