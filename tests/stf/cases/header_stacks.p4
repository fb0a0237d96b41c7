// Stacks: next, last, lastIndex, elements by constant and by number, push_front and pop_front.
#include "include/case.p4"

header item_t {
    bit<7> value;
    bit<1> bottom;
}

header count_t {
    bit<8> operation;
    bit<8> last_index;
}

struct headers_t {
    count_t   count;
    item_t[3] items;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.count);
        transition items;
    }
    state items {
        packet.extract(headers.items.next);
        headers.count.last_index = (bit<8>)headers.items.lastIndex;
        transition select(headers.items.last.bottom) {
            0: items;
            1: accept;
        }
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        if (standard.parser_error == error.StackOutOfBounds) {
            standard.egress_spec = 3;
        }
        if (headers.count.operation == 1) {
            headers.items.push_front(1);
            headers.items[0].setValid();
            headers.items[0].value = 0x55;
            headers.items[0].bottom = 0;
        } else if (headers.count.operation == 2) {
            headers.items.pop_front(1);
        } else if (headers.count.operation == 3) {
            headers.items[2].setInvalid();
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
