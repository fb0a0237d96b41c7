// select on a signed value: ranges below zero, across it and above.
#include "include/case.p4"

header key_t {
    int<8> a;
}

struct headers_t {
    key_t key;
}

struct metadata_t {
    bit<9> port;
}

PARSER(Parse) {
    state start {
        packet.extract(headers.key);
        metadata.port = 9;
        transition select(headers.key.a) {
            -128 .. -100: one;
            -5 .. 3: two;
            -8 .. -7: three;
            100 .. 127: four;
            default: accept;
        }
    }
    state one {
        metadata.port = 1;
        transition accept;
    }
    state two {
        metadata.port = 2;
        transition accept;
    }
    state three {
        metadata.port = 3;
        transition accept;
    }
    state four {
        metadata.port = 4;
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = metadata.port;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
