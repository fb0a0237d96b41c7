// Every kind of P4Runtime entity, for the fuzzing of the server.
#include <core.p4>
#include <v1model.p4>

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reserved;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> reserved;
}

header data_t {
    bit<8>   kind;
    bit<16>  port;
    bit<32>  source;
    bit<32>  destination;
    bit<128> wide;
}

struct headers_t {
    packet_in_t  packet_in;
    packet_out_t packet_out;
    data_t       data;
}

struct metadata_t {
    bit<2>  colour;
    bit<32> cell;
}

struct learned_t {
    bit<32> source;
    bit<9>  port;
}

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    value_set<bit<8>>(4) kinds;

    state start {
        transition select(standard_metadata.ingress_port) {
            510: parse_packet_out;
            default: parse_data;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_data;
    }
    state parse_data {
        packet.extract(hdr.data);
        transition select(hdr.data.kind) {
            kinds: accept;
            0 .. 100: accept;
            default: reject;
        }
    }
}

control V(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(8, CounterType.packets_and_bytes) cells_counter;
    meter(8, MeterType.bytes) cells_meter;
    register<bit<48>>(8) cells_register;
    direct_counter(CounterType.packets) route_counter;
    direct_meter<bit<2>>(MeterType.packets) acl_meter;
    action_profile(8) profile;
    action_selector(HashAlgorithm.crc16, 16, 8) selector;

    action forward(bit<9> port, bit<32> label) {
        standard_metadata.egress_spec = port;
        hdr.data.source = label;
    }
    action deny() {
        mark_to_drop(standard_metadata);
    }
    action learn() {
        digest<learned_t>(1, { hdr.data.source, standard_metadata.ingress_port });
    }
    action police(bit<32> index) {
        cells_counter.count(index);
        cells_meter.execute_meter(index, meta.colour);
        cells_register.write(index, 48w1);
    }
    action multicast(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }
    action mirror(bit<32> session) {
        clone(CloneType.I2E, session);
    }

    table route {
        key = { hdr.data.destination: lpm; }
        actions = { forward; @defaultonly deny; }
        default_action = deny();
        counters = route_counter;
        support_timeout = true;
        size = 64;
    }
    table acl {
        key = {
            hdr.data.source: ternary;
            hdr.data.port: range;
            hdr.data.kind: optional;
        }
        actions = { deny; learn; @tableonly police; NoAction; }
        meters = acl_meter;
        size = 16;
    }
    table exact_match {
        key = {
            hdr.data.wide: exact;
            hdr.data.isValid(): exact;
        }
        actions = { forward; multicast; mirror; NoAction; }
        const default_action = NoAction();
        size = 4;
    }
    table profiled {
        key = { hdr.data.kind: exact; }
        actions = { forward; deny; }
        implementation = profile;
    }
    table selected {
        key = {
            hdr.data.kind: exact;
            hdr.data.source: selector;
        }
        actions = { forward; deny; }
        implementation = selector;
    }
    table fixed {
        key = { hdr.data.kind: exact; }
        actions = { forward; deny; }
        const entries = {
            1: forward(3, 4);
            2: deny();
        }
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            route.apply();
            acl.apply();
            exact_match.apply();
            profiled.apply();
            selected.apply();
            fixed.apply();
        }
    }
}

control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.egress_port == 510) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        }
    }
}

control U(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control D(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.data);
    }
}

V1Switch(P(), V(), I(), E(), U(), D()) main;
