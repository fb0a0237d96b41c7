// Routes by address, counts by port, keeps the last source in a register, and meets every call that controllers make.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header ipv4_t {
    bit<64> first;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
}

struct metadata_t {}

struct seen_t {
    bit<32> source;
    bit<9> port;
}

parser Read(packet_in packet, out headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.type) {
            0x0800: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(headers.ipv4);
        transition accept;
    }
}

control Verify(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control MyIngress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    counter(8, CounterType.packets_and_bytes) received;
    register<bit<32>>(8) last_source;
    meter(8, MeterType.packets) rates;
    direct_counter(CounterType.packets_and_bytes) routed;

    action drop() {
        mark_to_drop(standard);
    }
    action forward(bit<48> destination, bit<9> port) {
        headers.ethernet.destination = destination;
        standard.egress_spec = port;
        routed.count();
    }
    action flood(bit<16> group) {
        standard.mcast_grp = group;
    }
    table routes {
        key = { headers.ipv4.destination: lpm; }
        actions = { forward; drop; }
        default_action = drop();
        counters = routed;
        size = 64;
    }
    table filters {
        key = {
            headers.ipv4.source: ternary;
            headers.ipv4.protocol: range;
        }
        actions = { drop; NoAction; }
        default_action = NoAction();
    }
    table groups {
        key = { headers.ethernet.destination: exact; }
        actions = { flood; NoAction; }
        default_action = NoAction();
    }

    apply {
        bit<32> colour = 0;
        received.count((bit<32>)standard.ingress_port);
        rates.execute_meter((bit<32>)standard.ingress_port, colour);
        last_source.write((bit<32>)standard.ingress_port, headers.ipv4.source);
        if (headers.ipv4.isValid()) {
            digest<seen_t>(1, {headers.ipv4.source, standard.ingress_port});
            if (filters.apply().miss) {
                routes.apply();
            }
        } else {
            groups.apply();
        }
    }
}

control MyEgress(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {}
}

control Compute(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control Write(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers);
    }
}

V1Switch(Read(), Verify(), MyIngress(), MyEgress(), Compute(), Write()) main;
