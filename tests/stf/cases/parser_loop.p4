// A loop of states that counts down, with a counter in metadata.
#include "include/case.p4"

header count_t {
    bit<8> items;
    bit<8> sum;
}

header item_t {
    bit<8> v;
}

struct headers_t {
    count_t   count;
    item_t[4] items;
}

struct metadata_t {
    bit<8> left;
    bit<8> sum;
}

PARSER(Parse) {
    state start {
        packet.extract(headers.count);
        metadata.left = headers.count.items;
        metadata.sum = 0;
        transition next_item;
    }
    state next_item {
        transition select(metadata.left) {
            0: accept;
            default: item;
        }
    }
    state item {
        packet.extract(headers.items.next);
        metadata.sum = metadata.sum + headers.items.last.v;
        metadata.left = metadata.left - 1;
        transition next_item;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        headers.count.sum = metadata.sum;
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
