// ?: as a value, nested, with sides that differ in what they read.
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
        standard.egress_spec = (headers.data.a > headers.data.b) ? 9w3 : 2;
        headers.data.c = headers.data.a == 0 ? 8w1 : (headers.data.b == 0 ? 8w2 : headers.data.a + headers.data.b);
        bool both = headers.data.a != 0 && !(headers.data.b == 0 || headers.data.b == 1);
        headers.data.a = both ? 8w0xaa : 8w0xbb;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
