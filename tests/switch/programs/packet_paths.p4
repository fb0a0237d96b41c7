// Every way that a packet may take through v1model's switch, chosen by the packet itself. Egress writes what it
// sees of the metadata into the header, so that two switches can be compared.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<16> number;          // of the packet, distinguishes its copies
    bit<8> ingress_action;   // ingress_* below
    bit<8> egress_action;
    bit<8> argument;         // port, session or group
    bit<8> passes;           // resubmissions or recirculations so far
}

header report_t {
    bit<32> instance_type;
    bit<16> ingress_port;
    bit<16> egress_port;
    bit<32> packet_length;
    bit<16> egress_rid;
    bit<16> kept;
    bit<16> lost;
    bit<16> egress_spec;
    bit<8> priority;
}

struct headers_t {
    request_t request;
    report_t report;
}

struct metadata_t {
    @field_list(1)
    bit<16> kept;
    bit<16> lost;
}

parser PathsParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        packet.extract(hdr.report);
        transition accept;
    }
}

control PathsVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control PathsIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(16, CounterType.packets_and_bytes) seen;

    apply {
        hdr.request.passes = hdr.request.passes + 1;
        seen.count((bit<32>)standard_metadata.instance_type);
        bit<16> arrived = standard_metadata.ingress_port == 0 ? 16w0x1000 : 16w0x2000;
        meta.kept = meta.kept + 16w1 + arrived;
        meta.lost = meta.lost + 16w1;
        standard_metadata.egress_spec = (bit<9>)hdr.request.argument;
        standard_metadata.priority = hdr.request.argument[2:0];
        if (hdr.request.ingress_action & 1 != 0) {
            clone_preserving_field_list(CloneType.I2E, 5, 1);
        }
        if (hdr.request.ingress_action & 2 != 0) {
            clone(CloneType.I2E, 6);
        }
        if (hdr.request.ingress_action & 4 != 0 && standard_metadata.instance_type != 6) {
            resubmit_preserving_field_list(1);
        }
        if (hdr.request.ingress_action & 8 != 0) {
            standard_metadata.mcast_grp = 16w1;
        }
        if (hdr.request.ingress_action & 16 != 0) {
            mark_to_drop(standard_metadata);
        }
        if (hdr.request.ingress_action & 32 != 0) {
            truncate(32w20);
        }
        if (hdr.request.ingress_action & 64 != 0) {
            standard_metadata.mcast_grp = 16w2;
        }
        if (hdr.request.ingress_action & 128 != 0) {
            exit;
        }
    }
}

control PathsEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        hdr.report.instance_type = standard_metadata.instance_type;
        hdr.report.ingress_port = (bit<16>)standard_metadata.ingress_port;
        hdr.report.egress_port = (bit<16>)standard_metadata.egress_port;
        hdr.report.packet_length = standard_metadata.packet_length;
        hdr.report.egress_rid = standard_metadata.egress_rid;
        hdr.report.kept = meta.kept;
        hdr.report.lost = meta.lost;
        hdr.report.egress_spec = (bit<16>)standard_metadata.egress_spec;
        hdr.report.priority = (bit<8>)standard_metadata.priority;
        if (hdr.request.egress_action & 1 != 0 && standard_metadata.instance_type != 2) {
            clone_preserving_field_list(CloneType.E2E, 5, 1);
        }
        // Clones stay out of it, since an ingress clone has the headers from before and would go round for ever.
        if (hdr.request.egress_action & 2 != 0 && hdr.request.passes < 2 && (standard_metadata.instance_type == 0 || standard_metadata.instance_type == 5)) {
            recirculate_preserving_field_list(1);
        }
        if (hdr.request.egress_action & 4 != 0) {
            truncate(32w24);
        }
        if (hdr.request.egress_action & 8 != 0 && standard_metadata.instance_type == 0) {
            mark_to_drop(standard_metadata);
        }
        if (hdr.request.egress_action & 16 != 0) {
            hdr.report.setInvalid();
        }
        if (hdr.request.egress_action & 32 != 0) {
            exit;
        }
        meta.kept = meta.kept + 16w7;
        hdr.request.argument = hdr.request.argument ^ 8w1;
    }
}

control PathsCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control PathsDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.request);
        packet.emit(hdr.report);
    }
}

V1Switch(PathsParser(), PathsVerify(), PathsIngress(), PathsEgress(), PathsCompute(), PathsDeparser()) main;
