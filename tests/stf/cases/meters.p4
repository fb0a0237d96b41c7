// A meter that has no rates is green; once the burst is used up a packet is red.
#include "include/case.p4"

header data_t {
    bit<8> index;
    bit<8> colour;
    bit<8> direct;
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
    meter(4, MeterType.packets) indirect;
    direct_meter<bit<8>>(MeterType.packets) entry_meter;
    bit<8> colour = 0x77;

    action measure() {
        entry_meter.read(headers.data.direct);
    }
    table choose {
        key = { headers.data.index: exact; }
        actions = { measure; NoAction; }
        meters = entry_meter;
        default_action = NoAction();
        const entries = {
            1: measure();
        }
    }

    apply {
        standard.egress_spec = 2;
        indirect.execute_meter((bit<32>)headers.data.index, colour);
        headers.data.colour = colour;
        choose.apply();
    }
}

#include "include/rest.p4"

V1Switch(Parse(), VerifyNothing(), Decide(), LeaveUnchanged(), UpdateNothing(), EmitAll()) main;
