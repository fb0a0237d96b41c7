// What a header held can be read after it has become invalid, as in BMv2 (the specification leaves it open): after
// setInvalid(), an assignment of an invalid header, an assignment of another member of the union, and at the other end
// of a stack. A header that has never been valid reads as zero, whatever the packet before had there.
#include "include/case.p4"

header choice_t {
    bit<8> operation;
    bit<8> found;
    bit<8> valid;
}

header item_t {
    bit<8> value;
}

header options_t {
    varbit<32> rest;
    bit<8>     last;
}

header_union either_t {
    item_t one;
    item_t other;
}

struct headers_t {
    choice_t  choice;
    item_t    item;
    item_t    never;
    options_t options;
    item_t[3] items;
    either_t  either;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.choice);
        transition select(headers.choice.operation) {
            0: accept;
            default: items;
        }
    }
    state items {
        packet.extract(headers.item);
        packet.extract(headers.options, 16);
        packet.extract(headers.items.next);
        packet.extract(headers.items.next);
        packet.extract(headers.items.next);
        packet.extract(headers.either.one);
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        bit<8> operation = headers.choice.operation;
        if (operation == 0) {
            headers.choice.found = headers.item.value | headers.options.last | headers.items[0].value |
                                   headers.either.one.value;
        } else if (operation == 1) {
            headers.item.setInvalid();
            headers.choice.found = headers.item.value;
        } else if (operation == 2) {
            headers.item = headers.never;
            headers.choice.found = headers.item.value;
        } else if (operation == 3) {
            headers.options.setInvalid();
            headers.choice.found = headers.options.last;
        } else if (operation == 4) {
            headers.items.pop_front(1);
            headers.choice.found = headers.items[2].value;
        } else if (operation == 5) {
            headers.items.push_front(2);
            headers.choice.found = headers.items[0].value ++ headers.items[1].value == 0xB3B2 ? 8w1 : 8w0;
        } else if (operation == 6) {
            headers.either.other.setValid();
            headers.choice.found = headers.either.one.value;
        } else if (operation == 7) {
            headers.item.setInvalid();
            headers.item.value = headers.item.value + 1;
            headers.choice.found = headers.item.value;
        } else if (operation == 8) {
            headers.item.setInvalid();
            headers.item.setValid();
            headers.choice.found = headers.item.value;
        }
        headers.choice.valid = (headers.item.isValid() ? 8w1 : 0) | (headers.options.isValid() ? 8w2 : 0);
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
