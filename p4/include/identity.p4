// Who a switch is, as the controller says, and the class that a packet's DSCP means.
#ifndef WEFT_IDENTITY_P4
#define WEFT_IDENTITY_P4

#include "headers.p4"

control Identity(inout metadata_t meta) {
    action set_identity(bit<12> switch_id, bit<32> hash_seed, mac_t mac, ipv4_address_t ipv4, ipv6_address_t ipv6,
                        bit<1> balances_load, bit<1> reports_queue_depths, bit<1> reports_port_depths,
                        bit<1> has_intermediates) {
        meta.identity.switch_id = switch_id;
        meta.identity.hash_seed = hash_seed;
        meta.identity.mac = mac;
        meta.identity.ipv4 = ipv4;
        meta.identity.ipv6 = ipv6;
        meta.identity.balances_load = balances_load;
        meta.identity.reports_queue_depths = reports_queue_depths;
        meta.identity.reports_port_depths = reports_port_depths;
        meta.identity.has_intermediates = has_intermediates;
    }

    // Keyless: its default action says who the switch is.
    table identity {
        actions = { set_identity; NoAction; }
        default_action = NoAction();
        size = 1;
    }

    apply {
        identity.apply();
        meta.own_address = meta.ip_version == 4 ? (ipv6_address_t)meta.identity.ipv4 : meta.identity.ipv6;
    }
}

control TrafficClasses(inout headers_t hdr, inout standard_metadata_t standard_metadata) {
    action set_class(bit<3> class) {
        standard_metadata.priority = class;
    }

    table class_map {
        key = { hdr.ipv4.dscp: exact @name("dscp"); }
        actions = { set_class; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 64;
    }

    table class_map_ipv6 {
        key = { hdr.ipv6.dscp: exact @name("dscp"); }
        actions = { set_class; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 64;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            class_map.apply();
        } else if (hdr.ipv6.isValid()) {
            class_map_ipv6.apply();
        }
    }
}

#endif
