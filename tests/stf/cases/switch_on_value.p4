// switch on a value: bit strings and enums, fall-through labels, no case that fits.
#include "include/case.p4"

enum bit<8> Kind { A = 1, B = 2, C = 3 }

header data_t {
    Kind kind;
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
        switch (headers.data.kind) {
            Kind.A:
            Kind.B: {
                headers.data.b = 0xab;
            }
            Kind.C: {
                headers.data.b = 0x0c;
            }
        }
        switch (headers.data.c + 1) {
            0: {
                standard.egress_spec = 3;
            }
            8w4: {
                standard.egress_spec = 4;
                return;
            }
            default: {
                headers.data.c = 0xdd;
            }
        }
        headers.data.b = headers.data.b + 1;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
