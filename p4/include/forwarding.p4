// IPv4 and IPv6 forwarding by longest prefix, with ECMP over an action selector.
//
// A flow's member follows from the CRC32 of a hash that is already well mixed. A CRC alone would not do: it is
// linear, so two switches' seeds would change all its values by the same difference, and a switch would find the
// flows that one below sent it by their hash sending them all on by one port of its own.
//
// A group may have another mode (load_balancing.p4). Whatever the mode, the selector takes the member, so it is one
// whose link is up. An adaptive choice looks at three members before it takes one: the flow's own, or the one whose
// turn it is, and two at random. A table is applied once for each packet, so each of the three is found by a table of
// its own, with a selector of its own, which hold what `ecmp` and its selector do. (p4c gives each table actions of its
// own, so in its JSON the members of one selector could not serve several tables.)
#ifndef WEFT_FORWARDING_P4
#define WEFT_FORWARDING_P4

#include "drops.p4"
#include "headers.p4"
#include "load_balancing.p4"
#include "queue_depths.p4"
#ifdef STRUCTURED_EV
#include "ev_routes/structured_ev.p4"
#endif

control Forwarding(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata,
                   inout DropReason drop_reason) {
    direct_counter(CounterType.packets_and_bytes) ipv4_counter;
    direct_counter(CounterType.packets_and_bytes) ipv6_counter;
    LoadBalancing() balancing;
    QueueDepth() queue_depth;
    QueueDepthAges() ages;

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

    action hash_flow() {
        hash(meta.ecmp_hash, HashAlgorithm.crc32, 32w0,
            { meta.flow.source, meta.flow.destination, meta.flow.label, meta.flow.protocol,
              meta.flow.source_port, meta.flow.destination_port },
            64w0x100000000);
        meta.ecmp_hash = meta.ecmp_hash ^ meta.identity.hash_seed;
        MIX_HASH(meta.ecmp_hash)
        hash(meta.ecmp_selection, HashAlgorithm.crc32, 32w0, { meta.ecmp_hash }, 64w0x100000000);
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

#define ECMP_TABLE(table_name) \
    action_selector(HashAlgorithm.identity, 32w1024, 32w32) table_name##_selector; \
    table table_name { \
        key = { \
            meta.ecmp_group: exact @name("group"); \
            meta.ecmp_selection: selector; \
        } \
        actions = { set_next_hop; no_route; } \
        implementation = table_name##_selector; \
        size = 1024; \
    }

#ifdef STRUCTURED_EV
    STRUCTURED_EV_TABLES
#else
    ECMP_TABLE(ecmp)
    ECMP_TABLE(ecmp_kept)
    ECMP_TABLE(ecmp_first)
    ECMP_TABLE(ecmp_second)
#endif

    apply {
        if (hdr.ipv4.isValid()) {
            if (hdr.ipv4.ihl != 5) {
                // Their checksum covers options that are not parsed, so it could not follow the TTL.
                drop_reason = DropReason.IPV4_OPTIONS;
            } else if (hdr.ipv4.ttl <= 1) {
                drop_reason = DropReason.TTL_EXPIRED;
            } else {
                hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                if (meta.nonminimal.is_taken == 0) {
                    ipv4_lpm.apply();
                }
            }
        } else {
            if (hdr.ipv6.hop_limit <= 1) {
                drop_reason = DropReason.TTL_EXPIRED;
            } else {
                hdr.ipv6.hop_limit = hdr.ipv6.hop_limit - 1;
                if (meta.nonminimal.is_taken == 0) {
                    ipv6_lpm.apply();
                }
            }
        }
#ifdef STRUCTURED_EV
        if (drop_reason == DropReason.NONE && meta.ecmp_group != 0) {
            ev_field_of_switch.apply();
            ev_ports.apply();
        }
#else
        if (drop_reason == DropReason.NONE && meta.ecmp_group != 0) {
            hash_flow();
            if (meta.identity.balances_load == 1) {
                adaptive_t adaptive;
                balancing.apply(hdr, meta, standard_metadata, adaptive);
                if (adaptive.chooses == 1) {
                    bit<32> kept = meta.ecmp_selection;
                    bit<19> kept_depth;
                    bit<48> kept_age;
                    ecmp_kept.apply();
                    queue_depth.apply(standard_metadata, adaptive.lifetime, kept_depth, kept_age);
                    bit<32> better = (bit<32>)adaptive.drawn[15:0];
                    bit<19> better_depth;
                    bit<48> better_age;
                    meta.ecmp_selection = better;
                    ecmp_first.apply();
                    queue_depth.apply(standard_metadata, adaptive.lifetime, better_depth, better_age);
                    bit<19> second_depth;
                    bit<48> second_age;
                    meta.ecmp_selection = (bit<32>)adaptive.drawn[31:16];
                    ecmp_second.apply();
                    queue_depth.apply(standard_metadata, adaptive.lifetime, second_depth, second_age);
                    if (second_depth < better_depth) {
                        better = meta.ecmp_selection;
                        better_depth = second_depth;
                        better_age = second_age;
                    }
                    meta.ecmp_selection = kept;
                    if (better_depth |+| adaptive.hysteresis <= kept_depth) {
                        meta.ecmp_selection = better;
                        kept_depth = better_depth;
                        kept_age = better_age;
                        if (adaptive.takes_turns == 0) {
                            kept = better;
                        }
                    }
                    flowlet_choices.write(adaptive.flowlet, kept);
                    ages.apply(kept_depth, kept_age);
                }
            }
            ecmp.apply();
        }
#endif
    }
}

#endif
