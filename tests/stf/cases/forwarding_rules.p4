// What becomes of a packet: drop and undrop in the ingress, drop in the egress, multicast before unicast.
#include "include/case.p4"

header data_t {
    bit<8> how;
    bit<8> rid;
    bit<8> port;
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
        if (headers.data.how == 1) {
            mark_to_drop(standard);
        } else if (headers.data.how == 2) {
            mark_to_drop(standard);
            standard.egress_spec = 3;
        } else if (headers.data.how == 3) {
            standard.egress_spec = 511;
        } else if (headers.data.how == 5) {
            standard.mcast_grp = 9;
        } else if (headers.data.how == 6) {
            standard.mcast_grp = 9;
            mark_to_drop(standard);
        } else if (headers.data.how == 8) {
            standard.mcast_grp = 10;
        }
    }
}

CONTROL(Leave) {
    apply {
        headers.data.rid = (bit<8>)standard.egress_rid;
        headers.data.port = (bit<8>)standard.egress_port;
        if (headers.data.how == 4) {
            mark_to_drop(standard);
        } else if (headers.data.how == 7) {
            standard.egress_spec = 6;
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), Leave(), UpdateNothing(), EmitAll()) main;
