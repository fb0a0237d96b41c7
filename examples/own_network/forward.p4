// A router of one table, which counts what each port receives.
#include <core.p4>
#include <v1model.p4>

const bit<16> IPV4 = 0x0800;

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

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
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
        transition accept;
    }
}

control Verify(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control Route(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    counter(512, CounterType.packets_and_bytes) received;

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
        received.count((bit<32>)standard.ingress_port);
        if (headers.ipv4.isValid() && headers.ipv4.ttl > 1) {
            routes.apply();
        } else {
            drop();
        }
    }
}

control Leave(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {}
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
