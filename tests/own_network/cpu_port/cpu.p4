// Forwards between two hosts, and clones what comes from them to a controller behind their Ethernet header: the port
// that it came by. What the controller sends goes to the port that the frame names.
#include <core.p4>
#include <v1model.p4>

const bit<16> TO_CONTROLLER = 0x1234;
const bit<16> FROM_CONTROLLER = 0x1235;

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> type;
}

header named_port_t {
    bit<16> port;
}

struct headers_t {
    ethernet_t ethernet;
    named_port_t named;
}

struct metadata_t {
    @field_list(1)
    bit<9> came_by;
}

parser Read(packet_in packet, out headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.type) {
            FROM_CONTROLLER: named;
            default: accept;
        }
    }
    state named {
        packet.extract(headers.named);
        transition accept;
    }
}

control Verify(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control Forward(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    counter(512, CounterType.packets) received;

    apply {
        received.count((bit<32>)standard.ingress_port);
        metadata.came_by = standard.ingress_port;
        if (headers.named.isValid()) {
            standard.egress_spec = (bit<9>)headers.named.port;
        } else {
            standard.egress_spec = 3 - standard.ingress_port;
            clone_preserving_field_list(CloneType.I2E, 100, 1);
        }
    }
}

control Leave(inout headers_t headers, inout metadata_t metadata, inout standard_metadata_t standard) {
    apply {
        if (standard.instance_type == 1) {
            headers.named.setValid();
            headers.named.port = (bit<16>)metadata.came_by;
            headers.ethernet.type = TO_CONTROLLER;
        }
    }
}

control Update(inout headers_t headers, inout metadata_t metadata) {
    apply {}
}

control Write(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers);
    }
}

V1Switch(Read(), Verify(), Forward(), Leave(), Update(), Write()) main;
