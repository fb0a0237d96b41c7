// IPv4 and IPv6 forwarding by longest prefix, with ECMP over an action selector.
//
// The selector takes its member by the CRC32 of a hash that is already well mixed. A CRC alone would not do: it is
// linear, so two switches' seeds would change all its values by the same difference, and a switch would find the
// flows that one below sent it by their hash sending them all on by one port of its own.
#ifndef WEFT_FORWARDING_P4
#define WEFT_FORWARDING_P4

#include "drops.p4"
#include "headers.p4"

control Forwarding(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                   inout DropReason drop_reason) {
    direct_counter(CounterType.packets_and_bytes) ipv4_counter;
    direct_counter(CounterType.packets_and_bytes) ipv6_counter;
    action_selector(HashAlgorithm.crc32, 32w1024, 32w14) ecmp_selector;

    action no_route() {
        drop_reason = DropReason.NO_ROUTE;
    }

    action set_next_hop(port_t port, mac_t source_mac, mac_t destination_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.source = source_mac;
        hdr.ethernet.destination = destination_mac;
    }

    action set_ecmp_group(bit<16> group) {
        meta.ecmp_group = group;
    }

    // The final mix of MurmurHash3 (A. Appleby): its multiplications are not linear in the seed.
    action hash_flow() {
        hash(meta.ecmp_hash, HashAlgorithm.crc32, 32w0,
            { meta.flow.source, meta.flow.destination, meta.flow.label, meta.flow.protocol,
              meta.flow.source_port, meta.flow.destination_port },
            64w0x100000000);
        meta.ecmp_hash = meta.ecmp_hash ^ meta.identity.hash_seed;
        meta.ecmp_hash = (meta.ecmp_hash ^ (meta.ecmp_hash >> 16)) * 0x85EBCA6B;
        meta.ecmp_hash = (meta.ecmp_hash ^ (meta.ecmp_hash >> 13)) * 0xC2B2AE35;
        meta.ecmp_hash = meta.ecmp_hash ^ (meta.ecmp_hash >> 16);
    }

    table ipv4_lpm {
        key = { hdr.ipv4.destination: lpm @name("destination"); }
        actions = { set_next_hop; set_ecmp_group; no_route; }
        default_action = no_route();
        counters = ipv4_counter;
        size = 16384;
    }

    table ipv6_lpm {
        key = { hdr.ipv6.destination: lpm @name("destination"); }
        actions = { set_next_hop; set_ecmp_group; no_route; }
        default_action = no_route();
        counters = ipv6_counter;
        size = 16384;
    }

    table ecmp {
        key = {
            meta.ecmp_group: exact @name("group");
            meta.ecmp_hash: selector;
        }
        actions = { set_next_hop; no_route; }
        implementation = ecmp_selector;
        size = 1024;
    }

    apply {
        if (hdr.ipv4.isValid()) {
            if (hdr.ipv4.ihl != 5) {
                // Their checksum covers options that are not parsed, so it could not follow the TTL.
                drop_reason = DropReason.IPV4_OPTIONS;
            } else if (hdr.ipv4.ttl <= 1) {
                drop_reason = DropReason.TTL_EXPIRED;
            } else {
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                ipv4_lpm.apply();
            }
        } else {
            if (hdr.ipv6.hop_limit <= 1) {
                drop_reason = DropReason.TTL_EXPIRED;
            } else {
                hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
                ipv6_lpm.apply();
            }
        }
        if (drop_reason == DropReason.NONE && meta.ecmp_group != 0) {
            hash_flow();
            ecmp.apply();
        }
    }
}

#endif
