// Numbers without a width as values of a `type`, wherever a value of one stands.
#include "include/case.p4"

type bit<8> vrf_t;
type vrf_t inner_vrf_t;
type int<8> offset_t;

const vrf_t DEFAULT_VRF = 0;
const vrf_t LAST_VRF = 0xff;
const inner_vrf_t INNER = 7;

struct pair_t {
    vrf_t vrf;
    offset_t offset;
}

header data_t {
    vrf_t vrf;
    bit<8> after;
    offset_t offset;
    inner_vrf_t inner;
}

struct headers_t {
    data_t data;
}

struct metadata_t {
    vrf_t vrf;
    pair_t pair;
}

PARSER(Parse) {
    state start {
        packet.extract(headers.data);
        metadata.vrf = 1;
        transition select(headers.data.vrf) {
            0: zero;
            0x10 &&& 0xf0: masked;
            0x20 .. 0x2f: ranged;
            LAST_VRF: accept;
        }
    }
    state zero {
        metadata.vrf = DEFAULT_VRF;
        transition accept;
    }
    state masked {
        metadata.vrf = 2;
        transition accept;
    }
    state ranged {
        metadata.vrf = 3;
        transition accept;
    }
}

vrf_t following(in vrf_t vrf) {
    if (vrf == 2) {
        return 4;
    }
    return vrf;
}

CONTROL(Decide) {
    action send(bit<9> port, offset_t offset) {
        standard.egress_spec = port;
        metadata.pair.offset = offset;
    }
    table by_vrf {
        key = { metadata.vrf: ternary; }
        actions = { send; }
        const default_action = send(9, -1);
        const entries = {
            0: send(1, 5);
            (4 &&& 0x07): send(2, 6);
            3: send(3, -128);
        }
    }
    apply {
        metadata.pair = { vrf = 8, offset = -3 };
        metadata.vrf = following(metadata.vrf);
        by_vrf.apply();
        headers.data.vrf = 1 != metadata.vrf ? metadata.pair.vrf : 0x55;
        headers.data.after = (bit<8>)metadata.vrf;
        headers.data.offset = metadata.pair.offset;
        headers.data.inner = INNER;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
