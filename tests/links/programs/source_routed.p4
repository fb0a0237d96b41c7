// A packet carries what each switch on its way is to do with it: one byte a switch, the first one first.
#include <core.p4>
#include <v1model.p4>

header route_h {
    bit<8> orders;   // as many bytes of orders are left
    bit<64> path;
}

struct headers_t {
    route_h route;
}

struct metadata_t {
    bit<1> again;
}

parser RouteParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.route);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) { apply { } }

// An order: what to do (2 bits), the class to queue in (3), the port or group (3).
control RouteIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        bit<8> order = hdr.route.path[63:56];
        hdr.route.path = hdr.route.path << 8;
        hdr.route.orders = hdr.route.orders - 1;
        standard.priority = order[5:3];
        meta.again = 0;
        if (order[7:6] == 1) {
            standard.mcast_grp = (bit<16>)order[2:0];
        } else if (order[7:6] == 2) {
            mark_to_drop(standard);
        } else {
            standard.egress_spec = (bit<9>)order[2:0];
            meta.again = (bit<1>)order[6:6];
        }
    }
}

control RouteEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (meta.again == 1) {
            recirculate_preserving_field_list(0);
        }
    }
}

control RouteDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.route);
    }
}

V1Switch(RouteParser(), NoChecksum(), RouteIngress(), RouteEgress(), NoChecksum(), RouteDeparser()) main;
