// Fields of an invalid header count in a hash, as zero if it has never been valid; a direct counter may have a table that nothing gets to.
#include "include/case.p4"

header data_t {
    bit<8>  a;
    bit<16> b;
    bit<16> crc16;
}

struct headers_t {
    data_t data;
    data_t missing;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.data);
        transition accept;
    }
}

CONTROL(Decide) {
    direct_counter(CounterType.packets) never;
    table unreached {
        key = { headers.data.a: exact; }
        actions = { NoAction; }
        counters = never;
    }

    apply {
        standard.egress_spec = 2;
        hash(headers.data.crc16, HashAlgorithm.crc16, 16w0, { headers.data.a, headers.missing.b }, 32w0x10000);
        exit;
        unreached.apply();
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
