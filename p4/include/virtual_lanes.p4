// Virtual lanes, hop by hop: which class a packet goes on in, so that no cycle of full buffers can wait for itself.
//
// A lane is a class from 0 to 7. On the wire it is the DSCP, from which the next switch's class_map has the class again;
// RoCEv2's iCRC does not cover it. Packets from hosts may begin in another lane, that of a layer of the routes which is
// chosen by destination, as InfiniBand's service level is; packets that leave their intermediate (valiant.p4) may change
// to a layer, too. Then the ports by which a packet comes and goes decide.
// ECN's bits stay as they are. Without entries nothing changes.
#ifndef WEFT_VIRTUAL_LANES_P4
#define WEFT_VIRTUAL_LANES_P4

#include "headers.p4"

control VirtualLanes(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    bit<6> new_dscp = 0;
    bool is_moved = false;

    action from_host() { }

    // Ports where packets enter the fabric.
    table host_ports {
        key = { standard_metadata.ingress_port: exact @name("port"); }
        actions = { from_host; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 512;
    }

    action set_layer(bit<3> number) {
        meta.layer = number;
    }

    table layer_by_ipv4 {
        key = { hdr.ipv4.destination: lpm @name("destination"); }
        actions = { set_layer; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    table layer_by_ipv6 {
        key = { hdr.ipv6.destination: lpm @name("destination"); }
        actions = { set_layer; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16384;
    }

    action set_virtual_lane(bit<3> class, bit<6> dscp) {
        standard_metadata.priority = class;
        new_dscp = dscp;
        is_moved = true;
    }

    table layer_lane {
        key = {
            meta.layer: exact @name("layer");
            standard_metadata.priority: exact @name("class");
        }
        actions = { set_virtual_lane; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 64;
    }

    table virtual_lane {
        key = {
            standard_metadata.ingress_port: ternary @name("ingress_port");
            standard_metadata.egress_spec: ternary @name("egress_port");
            standard_metadata.priority: exact @name("class");
        }
        actions = { set_virtual_lane; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 4096;
    }

    apply {
        if (host_ports.apply().hit) {
            if (hdr.ipv4.isValid()) {
                layer_by_ipv4.apply();
            } else {
                layer_by_ipv6.apply();
            }
        }
        if (meta.layer != 0) {
            layer_lane.apply();
        }
        virtual_lane.apply();
        if (is_moved) {
            if (hdr.ipv4.isValid()) {
                hdr.ipv4.dscp = new_dscp;
            } else {
                hdr.ipv6.dscp = new_dscp;
            }
        }
    }
}

#endif
