// A recirculated packet starts over as it left, with the metadata of its field list.
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
        if (standard.instance_type == 4) {
            standard.egress_spec = 3;
            headers.data.kept = metadata.kept;
            headers.data.lost = headers.data.lost + metadata.lost;
        }
        metadata.kept = 0x5a;
        metadata.lost = 0xa5;
    }
}

CONTROL(Leave) {
    apply {
        headers.data.instance = (bit<8>)standard.instance_type;
        if (headers.data.how == 1) {
            headers.data.how = 0x81;
            headers.data.lost = 0x0e;
            recirculate_preserving_field_list(1);
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), Leave(), UpdateNothing(), EmitAll()) main;
