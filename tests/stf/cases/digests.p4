// A digest leaves the packet alone.
#include "include/case.p4"

struct learned_t {
    bit<8> a;
    bit<9> port;
}

header data_t {
    bit<8> a;
    bit<8> b;
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
        if (headers.data.a > 4) {
            digest<learned_t>(1, { headers.data.a, standard.ingress_port });
            digest(2, { headers.data.b, headers.data.a });
        }
        headers.data.b = 1;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
