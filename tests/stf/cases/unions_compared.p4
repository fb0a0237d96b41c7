// Unions are equal if the same member of both is valid, and equal, or none; stacks of unions, element by element.
#include "include/case.p4"

header kind_t {
    bit<8> kind;
    bit<8> result;
}

header short_t {
    bit<8> v;
}

header long_t {
    bit<16> v;
}

header_union either_t {
    short_t short;
    long_t  long;
}

struct headers_t {
    kind_t      kind;
    either_t[2] first;
    either_t[2] second;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.kind);
        transition select(headers.kind.kind) {
            1: both;
            2: one;
            3: crossed;
            default: accept;
        }
    }
    state both {
        packet.extract(headers.first[0].short);
        packet.extract(headers.first[1].long);
        packet.extract(headers.second[0].short);
        packet.extract(headers.second[1].long);
        transition accept;
    }
    state one {
        packet.extract(headers.first[0].long);
        packet.extract(headers.second[0].long);
        transition accept;
    }
    state crossed {
        packet.extract(headers.first[0].short);
        packet.extract(headers.second[0].long);
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        headers.kind.result = 0;
        if (headers.first == headers.second) {
            headers.kind.result = headers.kind.result | 1;
        }
        if (headers.first[0] == headers.second[0]) {
            headers.kind.result = headers.kind.result | 2;
        }
        if (headers.first[1] != headers.second[1]) {
            headers.kind.result = headers.kind.result | 4;
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
