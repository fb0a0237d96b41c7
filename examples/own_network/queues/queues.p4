// Routers that write into each probe which queue it has met: the switch, the port, how many packets waited there when it
// came and how many when it left, and for how long it waited.
#include <core.p4>
#include <v1model.p4>

const bit<16> IPV4 = 0x0800;
const bit<8> UDP = 17;
const bit<16> PROBE_PORT = 7000;

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header ipv4_t {
    bit<8> version_and_length;
    bit<8> traffic_class;
    bit<16> total_length;
    bit<16> identification;
    bit<16> fragment;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

header udp_t {
    bit<16> source;
    bit<16> destination;
    bit<16> length;
    bit<16> checksum;
}

// A probe has room for its hops from the start, so that no length changes on the way.
header probe_t {
    bit<8> hops;
}

header hop_t {
    bit<8> switch_number;
    bit<16> port;
    bit<32> met_packets;
    bit<32> left_packets;
    bit<32> waited_us;
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    probe_t probe;
    hop_t first;
    hop_t second;
}

struct metadata_t {}

parser Read(packet_in packet, out headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.type) {
            IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(headers.ipv4);
        transition select(headers.ipv4.protocol) {
            UDP: udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(headers.udp);
        transition select(headers.udp.destination) {
            PROBE_PORT: probe;
            default: accept;
        }
    }
    state probe {
        packet.extract(headers.probe);
        packet.extract(headers.first);
        packet.extract(headers.second);
        transition accept;
    }
}

control Verify(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control Route(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    action drop() {
        mark_to_drop(standard);
    }
    action forward(bit<48> next_hop, bit<9> port) {
        standard.egress_spec = port;
        headers.ethernet.source = headers.ethernet.destination;
        headers.ethernet.destination = next_hop;
        headers.ipv4.ttl = headers.ipv4.ttl - 1;
    }
    table routes {
        key = { headers.ipv4.destination: lpm; }
        actions = { forward; drop; }
        default_action = drop();
        size = 1024;
    }
    apply {
        if (headers.ipv4.isValid() && headers.ipv4.ttl > 1) {
            routes.apply();
        } else {
            drop();
        }
    }
}

control Leave(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    action write(inout hop_t hop, bit<8> switch_number) {
        hop.switch_number = switch_number;
        hop.port = (bit<16>)standard.egress_port;
        hop.met_packets = (bit<32>)standard.enq_qdepth;
        hop.left_packets = (bit<32>)standard.deq_qdepth;
        hop.waited_us = standard.deq_timedelta;
    }
    action stamp(bit<8> switch_number) {
        if (headers.probe.hops == 0) {
            write(headers.first, switch_number);
        } else {
            write(headers.second, switch_number);
        }
        headers.probe.hops = headers.probe.hops + 1;
    }
    table own_number {
        actions = { stamp; NoAction; }
        default_action = NoAction();
    }
    apply {
        if (headers.probe.isValid() && headers.probe.hops < 2) {
            own_number.apply();
        }
    }
}

control Update(inout headers_t headers, inout metadata_t metadata) {
    apply {
        update_checksum(headers.ipv4.isValid(),
            { headers.ipv4.version_and_length, headers.ipv4.traffic_class, headers.ipv4.total_length,
              headers.ipv4.identification, headers.ipv4.fragment, headers.ipv4.ttl, headers.ipv4.protocol,
              headers.ipv4.source, headers.ipv4.destination },
            headers.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Write(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers);
    }
}

V1Switch(Read(), Verify(), Route(), Leave(), Update(), Write()) main;
