// A parser applied in another one, twice, with parameters of each direction.
#include "include/case.p4"

header item_t {
    bit<8> more;
    bit<8> value;
}

header sum_t {
    bit<8> sum;
}

struct headers_t {
    sum_t  sum;
    item_t first;
    item_t second;
}

struct metadata_t {
    bit<8> sum;
    bit<1> more;
}

parser ParseItem(packet_in packet, out item_t item, in bit<8> factor, inout bit<8> sum)(bit<8> offset) {
    state start {
        packet.extract(item);
        transition select(factor) {
            1: plain;
            default: doubled;
        }
    }
    state plain {
        sum = sum + item.value + offset;
        transition accept;
    }
    state doubled {
        sum = sum + 2 * item.value + offset;
        transition accept;
    }
}

PARSER(Parse) {
    ParseItem(0x10) parse_item;

    state start {
        packet.extract(headers.sum);
        metadata.sum = 0;
        parse_item.apply(packet, headers.first, 1, metadata.sum);
        transition select(headers.first.more) {
            0: accept;
            default: second;
        }
    }
    state second {
        parse_item.apply(packet, headers.second, 2, metadata.sum);
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        headers.sum.sum = metadata.sum;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
