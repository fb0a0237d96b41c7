// Unions: at most one member is valid; it is extracted, replaced and emitted.
#include "include/case.p4"

header kind_t {
    bit<8> kind;
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
    kind_t   kind;
    either_t either;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.kind);
        transition select(headers.kind.kind) {
            1: short;
            2: long;
            3: short;
            default: accept;
        }
    }
    state short {
        packet.extract(headers.either.short);
        transition accept;
    }
    state long {
        packet.extract(headers.either.long);
        transition accept;
    }
}

CONTROL(Decide) {
    apply {
        standard.egress_spec = 2;
        if (!headers.either.isValid()) {
            standard.egress_spec = 5;
        } else if (headers.kind.kind == 3) {
            bit<8> v = headers.either.short.v;
            headers.either.long.setValid();
            headers.either.long.v = 8w0xab ++ v;
        } else if (headers.either.long.isValid()) {
            headers.either.long.v = headers.either.long.v + 1;
        }
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
