// Clones of the ingress and the egress: their headers, their metadata with and without a field list.
#include "include/case.p4"

header data_t {
    bit<8> how;
    bit<8> instance;
    bit<8> kept;
    bit<8> lost;
}

struct headers_t {
    data_t data;
}

struct metadata_t {
    @field_list(1)
    bit<8> kept;
    bit<8> lost;
}

PARSER(Parse) {
    state start {
        packet.extract(headers.data);
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        metadata.kept = 0x5a;
        metadata.lost = 0xa5;
        headers.data.lost = 0xee;
        if (headers.data.how == 1) {
            clone(CloneType.I2E, 5);
        } else if (headers.data.how == 2) {
            clone_preserving_field_list(CloneType.I2E, 5, 1);
        } else if (headers.data.how == 5) {
            clone(CloneType.I2E, 6);
        }
    }
}

CONTROL(Leave) {
    apply {
        headers.data.instance = (bit<8>)standard.instance_type;
        if (standard.instance_type == 0) {
            if (headers.data.how == 3) {
                clone(CloneType.E2E, 5);
            } else if (headers.data.how == 4) {
                clone_preserving_field_list(CloneType.E2E, 5, 1);
            }
        } else {
            headers.data.kept = metadata.kept;
            headers.data.lost = metadata.lost;
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), Leave(), UpdateNothing(), EmitAll()) main;
