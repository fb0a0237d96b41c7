// Slices read and assigned, concatenation, also of slices and into slices.
#include "include/case.p4"

header data_t {
    bit<16> a;
    bit<8> b;
    bit<24> joined;
    bit<4> high;
    bit<4> low;
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
        headers.data.joined = headers.data.a ++ headers.data.b;
        headers.data.joined[15:8] = headers.data.a[11:4];
        headers.data.high = headers.data.b[7:4];
        headers.data.low = headers.data.a[3:0] ^ headers.data.b[3:0];
        headers.data.a[15:12] = headers.data.b[3:0];
        headers.data.a[0:0] = 1;
        headers.data.b = headers.data.a[3:0] ++ headers.data.a[15:12];
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
