// Indirect counters of packets and bytes, direct counters of a table's entries.
#include "include/case.p4"

header data_t {
    bit<8> which;
    bit<8> index;
}

struct headers_t {
    data_t data;
}

struct metadata_t { }

PARSER(Parse) {
    state start {
        packet.extract(headers.data);
        transition accept;
    }
}

CONTROL(Decide) {
    counter(4, CounterType.packets) packets_seen;
    counter(4, CounterType.packets_and_bytes) all_seen;
    direct_counter(CounterType.packets_and_bytes) entry_seen;

    action send(bit<9> port) {
        entry_seen.count();
        standard.egress_spec = port;
    }
    table choose {
        key = { headers.data.which: exact; }
        actions = { send; NoAction; }
        counters = entry_seen;
        default_action = NoAction();
    }

    apply {
        standard.egress_spec = 2;
        packets_seen.count((bit<32>)headers.data.index);
        if (headers.data.which != 0) {
            all_seen.count(1);
        }
        choose.apply();
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
