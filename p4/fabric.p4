// Weft's fabric switch: one program, a leaf or a spine by its tables.
//
// IPv4 and IPv6 with ECMP and load balancing, ARP and neighbour discovery, ICMP's time exceeded, RoCEv2 classes, ECN
// marking, HPCC's INT and in-network aggregation. Formats: docs/spec. Services are modules: -D SERVICE_SYNCHRONISATION
// includes barriers and counters, -D SERVICE_PARAMETER_CACHE a cache of a parameter store. -D INT_MD includes P4.org's INT,
// -D SRV6 source routes.
// -D BOLT notifications of queues to senders.
#include <core.p4>
#include <v1model.p4>

#include "include/headers.p4"
#include "include/parser.p4"
#include "include/drops.p4"
#include "include/identity.p4"
#include "include/neighbours.p4"
#include "include/time_exceeded.p4"
#include "include/load_balancing.p4"
#include "include/queue_depths.p4"
#include "include/forwarding.p4"
#include "include/valiant.p4"
#include "include/virtual_lanes.p4"
#ifdef SRV6
#include "include/ev_routes/srv6.p4"
#endif
#include "include/aggregation.p4"
#ifdef SERVICE_SYNCHRONISATION
#include "include/services/synchronisation.p4"
#endif
#ifdef SERVICE_PARAMETER_CACHE
#include "include/services/parameter_cache.p4"
#endif
#include "include/ecn.p4"
#include "include/telemetry.p4"
#ifdef INT_MD
#include "include/int_md/int_md.p4"
#endif
#ifdef BOLT
#include "include/bolt/bolt.p4"
#endif

control FabricIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(512, CounterType.packets_and_bytes) port_received;
    direct_counter(CounterType.packets_and_bytes) acl_counter;
    Identity() identity;
    TrafficClasses() classes;
    Neighbours() neighbours;
    Valiant() valiant;
    Forwarding() forwarding;
    ValiantDeparture() departure;
    VirtualLanes() virtual_lanes;
#ifdef SRV6
    Srv6() srv6;
#endif
    Aggregation() aggregation;
#ifdef SERVICE_SYNCHRONISATION
    Synchronisation() synchronisation;
#endif
#ifdef SERVICE_PARAMETER_CACHE
    ParameterCache() parameter_cache;
#endif
    Drops() drops;
#ifdef INT_MD
    IntMdEdge() int_md_edge;
#endif
    TimeExceeded() time_exceeded;

    DropReason drop_reason = DropReason.NONE;
    bool punted = false;

    action permit() {
        acl_counter.count();
    }

    action deny() {
        acl_counter.count();
        drop_reason = DropReason.DENIED_BY_ACL;
    }

    action punt() {
        acl_counter.count();
        standard_metadata.egress_spec = CPU_PORT;
        punted = true;
    }

    table acl {
        key = {
            standard_metadata.ingress_port: ternary @name("port");
            hdr.ethernet.ether_type: ternary @name("ether_type");
            meta.flow.source: ternary @name("source");
            meta.flow.destination: ternary @name("destination");
            meta.flow.protocol: ternary @name("protocol");
            meta.flow.source_port: ternary @name("source_port");
            meta.flow.destination_port: ternary @name("destination_port");
        }
        actions = { permit; deny; punt; @defaultonly NoAction; }
        const default_action = NoAction();
        counters = acl_counter;
        size = 1024;
    }

    apply {
        port_received.count((bit<32>)standard_metadata.ingress_port);
        identity.apply(meta);
#ifdef INT_MD
        int_md_edge.apply(meta, standard_metadata);
#endif
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (standard_metadata.parser_error != error.NoError) {
            drop_reason = DropReason.PARSER_ERROR;
        } else if (standard_metadata.checksum_error == 1) {
            drop_reason = DropReason.IPV4_CHECKSUM;
#ifdef INT_MD
        } else if (hdr.int_md.isValid() && meta.int_md_from_host == 1) {
            drop_reason = DropReason.INT_MD_FROM_HOST;
#endif
        } else {
            acl.apply();
#ifdef SRV6
            if (hdr.outer_ipv6.isValid()) {
                // Of the two headers only the outer one is known to be what the way has made of it.
                hdr.ipv6.dscp = hdr.outer_ipv6.dscp;
                hdr.ipv6.ecn = hdr.outer_ipv6.ecn;
            }
#endif
            classes.apply(hdr, standard_metadata);
            bool has_ip = hdr.ipv4.isValid() || hdr.ipv6.isValid();
            bool is_resolution = hdr.arp.isValid() || hdr.neighbour.isValid();
            bool is_to_this_mac = hdr.ethernet.destination == meta.identity.mac;
            bool is_to_this_address = has_ip && meta.flow.destination == meta.own_address;
            if ((meta.identity.has_intermediates == 1 || hdr.valiant_shim.isValid()) &&
                drop_reason == DropReason.NONE && has_ip && is_to_this_mac && !punted) {
                valiant.apply(hdr, meta, standard_metadata, is_to_this_address, drop_reason);
            }
            if (drop_reason != DropReason.NONE || punted) {
                // The access list has decided.
            } else if (!has_ip && !is_resolution) {
                drop_reason = DropReason.UNKNOWN_ETHERTYPE;
#ifdef SRV6
            } else if (hdr.outer_ipv6.isValid()) {
                srv6.apply(hdr, meta, standard_metadata, is_to_this_mac, drop_reason);
#endif
            } else if (hdr.aggregation.isValid() && ((is_to_this_mac && is_to_this_address) ||
                                                     meta.flow.destination[127:16] == RESULT_GROUP(meta))) {
                aggregation.apply(hdr, meta, standard_metadata, drop_reason);
#ifdef SERVICE_SYNCHRONISATION
            } else if (hdr.service.isValid() && ((is_to_this_mac && is_to_this_address) ||
                                                 meta.flow.destination[127:16] == SERVICE_GROUP(meta))) {
                synchronisation.apply(hdr, meta, standard_metadata, drop_reason);
#endif
            } else if (is_resolution || (is_to_this_mac && is_to_this_address)) {
                neighbours.apply(hdr, meta, standard_metadata, drop_reason);
            } else if (!is_to_this_mac) {
                drop_reason = DropReason.NOT_FOR_THIS_SWITCH;
            } else if (hdr.aggregation.isValid()) {
                // Each goes to the next node of its tree and no further: one for another node is forged.
                drop_reason = DropReason.AGGREGATION_NOT_FORWARDED;
#ifdef SERVICE_SYNCHRONISATION
            } else if (hdr.service.isValid()) {
                drop_reason = DropReason.SERVICE_NOT_FORWARDED;
#endif
            } else {
#ifdef SERVICE_PARAMETER_CACHE
                if (hdr.parameter.isValid()) {
                    parameter_cache.apply(hdr, meta, standard_metadata, drop_reason);
                }
                if (drop_reason == DropReason.NONE)
#endif
                {
                    forwarding.apply(hdr, meta, standard_metadata, drop_reason);
                }
                if (drop_reason == DropReason.NONE) {
                    if (meta.nonminimal.is_drawn == 1) {
                        departure.apply(hdr, meta, standard_metadata);
                    }
                    virtual_lanes.apply(hdr, meta, standard_metadata);
                }
            }
        }
        if (drop_reason != DropReason.NONE) {
            drops.apply(standard_metadata, drop_reason);
            if (drop_reason == DropReason.TTL_EXPIRED) {
                time_exceeded.apply(hdr, meta, standard_metadata);
            }
        }
    }
}

control FabricEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(512, CounterType.packets_and_bytes) port_sent;
    EcnMarking() ecn;
    IntStamping() telemetry;
#ifdef INT_MD
    IntMd() int_md;
    IntMdReport() int_md_report;
#endif
#ifdef BOLT
    Bolt() bolt;
    Notification() notification;
#endif
    QueueDepthReport() queue_depth_report;
    AggregationCopies() copies;
    AggregationIcrc() icrc;
#ifdef SERVICE_SYNCHRONISATION
    ServiceIcrc() service_icrc;
#endif
#ifdef SERVICE_PARAMETER_CACHE
    ParameterIcrc() parameter_icrc;
#endif

    apply {
#ifdef BOLT
        if (standard_metadata.instance_type == INSTANCE_EGRESS_CLONE && meta.notifies == 1) {
            // A notification in the making, which no port sends yet.
            notification.apply(hdr, meta, standard_metadata);
            return;
        }
#endif
#ifdef INT_MD
        if (standard_metadata.instance_type == INSTANCE_EGRESS_CLONE) {
            // A report in the making, which no port sends yet.
            int_md_report.apply(hdr, meta, standard_metadata);
            return;
        }
#endif
        port_sent.count((bit<32>)standard_metadata.egress_port);
        if (standard_metadata.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.reserved = 0;
        } else {
#ifdef BOLT
            bolt.apply(hdr, meta, standard_metadata);
#endif
            ecn.apply(hdr, meta, standard_metadata);
#ifdef SRV6
            if (hdr.outer_ipv6.isValid()) {
                hdr.outer_ipv6.ecn = hdr.ipv6.ecn;
            }
#endif
#ifdef INT_MD
            int_md.apply(hdr, meta, standard_metadata);
#endif
            telemetry.apply(hdr, meta, standard_metadata);
            if (meta.identity.reports_queue_depths == 1) {
                queue_depth_report.apply(standard_metadata, meta.identity.reports_port_depths);
            }
#ifdef SERVICE_SYNCHRONISATION
            if (hdr.service.isValid() && meta.rewrite_icrc == 1) {
                service_icrc.apply(hdr, hdr.icrc.value);
                meta.rewrite_icrc = 0;
            }
#endif
#ifdef SERVICE_PARAMETER_CACHE
            if (hdr.parameter.isValid() && meta.rewrite_icrc == 1) {
                parameter_icrc.apply(hdr, hdr.icrc.value);
                meta.rewrite_icrc = 0;
            }
#endif
            if (meta.rewrite_icrc == 1) {
                copies.apply(hdr, standard_metadata);
                icrc.apply(hdr, hdr.icrc.value);
            }
        }
    }
}

V1Switch(FabricParser(), FabricVerifyChecksum(), FabricIngress(), FabricEgress(), FabricComputeChecksum(),
         FabricDeparser()) main;
