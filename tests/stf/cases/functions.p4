// Functions: early return, inout and out parameters, calls within calls.
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

bit<8> clamp(in bit<8> value, in bit<8> highest) {
    if (value > highest) {
        return highest;
    }
    return value;
}

void swap(inout bit<8> left, inout bit<8> right) {
    bit<8> kept = left;
    left = right;
    right = kept;
}

bool split(in bit<8> value, out bit<4> high, out bit<4> low) {
    high = value[7:4];
    low = value[3:0];
    return high == low;
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        bit<4> high;
        bit<4> low;
        headers.data.a = clamp(headers.data.a + clamp(headers.data.b, 2), 0x50);
        swap(headers.data.a, headers.data.b);
        if (split(headers.data.c, high, low)) {
            standard.egress_spec = 3;
        }
        headers.data.c = low ++ high;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
