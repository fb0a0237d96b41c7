// Every kind of P4Runtime entity that simple_switch_grpc has, too.
#include <core.p4>
#include <v1model.p4>

header data_t {
    bit<8>  a;
    bit<16> b;
    bit<32> c;
    bit<8>  d;
}

struct headers_t {
    data_t data;
}

struct metadata_t {
    bit<8> colour;
}

parser MyParser(packet_in packet, out headers_t headers, inout metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(headers.data);
        transition accept;
    }
}

control MyVerifyChecksum(inout headers_t headers, inout metadata_t meta) { apply {} }

control MyIngress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(16, CounterType.packets_and_bytes) indirect;
    meter(16, MeterType.packets) police;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<8>>(MeterType.packets) rate;
    action_selector(HashAlgorithm.crc16, 32w16, 32w8) choice;

    action drop() { mark_to_drop(standard_metadata); }
    action send(bit<9> port) { standard_metadata.egress_spec = port; }
    action account(bit<32> index) {
        indirect.count(index);
        police.execute_meter(index, meta.colour);
    }
    action multicast(bit<16> group) { standard_metadata.mcast_grp = group; }
    action watch() { rate.read(meta.colour); }

    table exact_table {
        key = { headers.data.a: exact; headers.data.b: exact; }
        actions = { send; drop; multicast; @defaultonly NoAction; }
        default_action = NoAction();
        counters = hits;
        size = 4;
    }
    table lpm_table {
        key = { headers.data.c: lpm; }
        actions = { send; @tableonly drop; account; NoAction; }
        default_action = NoAction();
        support_timeout = true;
        size = 64;
    }
    table ternary_table {
        key = { headers.data.c: ternary; headers.data.d: range; headers.data.a: optional; }
        actions = { watch; NoAction; }
        meters = rate;
        const default_action = NoAction();
        size = 64;
    }
    table selector_table {
        key = { headers.data.a: exact; headers.data.b: selector; }
        actions = { send; drop; NoAction; }
        implementation = choice;
        size = 64;
    }
    table constant_table {
        key = { headers.data.d: exact; }
        actions = { send; NoAction; }
        const entries = {
            1: send(1);
            2: send(2);
        }
    }

    apply {
        exact_table.apply();
        lpm_table.apply();
        ternary_table.apply();
        selector_table.apply();
        constant_table.apply();
    }
}

control MyEgress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {}
}

control MyComputeChecksum(inout headers_t headers, inout metadata_t meta) { apply {} }

control MyDeparser(packet_out packet, in headers_t headers) {
    apply { packet.emit(headers.data); }
}

V1Switch(MyParser(), MyVerifyChecksum(), MyIngress(), MyEgress(), MyComputeChecksum(), MyDeparser()) main;
