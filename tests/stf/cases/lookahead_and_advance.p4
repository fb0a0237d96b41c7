// lookahead reads without consuming, advance consumes without reading.
#include "include/case.p4"

header first_t {
    bit<8> a;
}

header pair_t {
    bit<4> high;
    bit<4> low;
}

struct headers_t {
    first_t first;
    pair_t  pair;
}

struct metadata_t {
    bit<8> seen;
}

PARSER(Parse) {
    state start {
        metadata.seen = packet.lookahead<bit<8>>();
        pair_t ahead = packet.lookahead<pair_t>();
        transition select(ahead.high, packet.lookahead<bit<16>>()[7:0]) {
            (0xf, _): skip;
            (_, 0xaa): whole;
            default: first;
        }
    }
    state skip {
        packet.advance(8 * (bit<32>)metadata.seen[3:0]);
        transition first;
    }
    state whole {
        packet.extract(headers.pair);
        transition accept;
    }
    state first {
        packet.extract(headers.first);
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        if (standard.parser_error != error.NoError) {
            standard.egress_spec = 3;
        }
        if (headers.first.isValid()) {
            headers.first.a = metadata.seen;
        } else {
            headers.pair.low = headers.pair.high;
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
