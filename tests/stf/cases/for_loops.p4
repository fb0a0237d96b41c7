// for over a range and with a condition, nested, with break and continue.
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
    apply {
        standard.egress_spec = 2;
        bit<8> sum = 0;
        for (bit<8> i in 1 .. 4) {
            sum = sum + i;
        }
        headers.data.a = sum;
        sum = 0;
        for (bit<8> i = 0, bit<8> j = 10; i < j; i = i + 1, j = j - 1) {
            sum = sum + 0x10;
        }
        headers.data.b = sum;
        sum = 0;
        for (bit<8> i in 1 .. 6) {
            if (i == 2) {
                continue;
            }
            if (i == headers.data.c) {
                break;
            }
            for (bit<8> k in 0 .. 1) {
                sum = sum + k + i;
            }
        }
        headers.data.c = sum;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
