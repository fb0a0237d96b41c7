// A value set without members matches nothing.
#include "include/case.p4"

header key_t {
    bit<8> a;
}

struct headers_t {
    key_t key;
}

struct metadata_t {
    bit<9> port;
}

PARSER(Parse) {
    value_set<bit<8>>(4) known;

    state start {
        packet.extract(headers.key);
        metadata.port = 1;
        transition select(headers.key.a) {
            known: in_set;
            7: accept;
            default: other;
        }
    }
    state in_set {
        metadata.port = 2;
        transition accept;
    }
    state other {
        metadata.port = 3;
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
