// A program of your own: leaves tag packets with their tenant, spines count by the tag, and the last leaf takes it off.
// Routes and ECN marking are Weft's modules; the header, two tables and the counter are this file's.
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_TENANT = 0x88B7;

header tenant_t {
    bit<16> number;
    bit<16> next_ethertype;
}

#define OWN_HEADERS tenant_t tenant;
#define OWN_ETHERTYPES ETHERTYPE_TENANT: parse_tenant;
#define OWN_PARSER_STATES \
    state parse_tenant { \
        packet.extract(hdr.tenant); \
        transition select(hdr.tenant.next_ethertype) { \
            ETHERTYPE_IPV4: parse_ipv4; \
            default: accept; \
        } \
    }
#define OWN_EMITS packet.emit(hdr.tenant);

#include <weft/headers.p4>
#include <weft/parser.p4>
#include <weft/drops.p4>
#include <weft/identity.p4>
#include <weft/forwarding.p4>
#include <weft/ecn.p4>

control TenantIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    counter(16, CounterType.packets_and_bytes) tenant_packets;
    Identity() identity;
    TrafficClasses() classes;
    Forwarding() forwarding;
    Drops() drops;
    DropReason drop_reason = DropReason.NONE;

    action set_tenant(bit<16> number) {
        hdr.tenant.setValid();
        hdr.tenant.number = number;
        hdr.tenant.next_ethertype = hdr.ethernet.ether_type;
        hdr.ethernet.ether_type = ETHERTYPE_TENANT;
    }

    table tenants {
        key = { hdr.ipv4.source: exact @name("source"); }
        actions = { set_tenant; NoAction; }
        default_action = NoAction();
        size = 1024;
    }

    apply {
        identity.apply(meta);
        classes.apply(hdr, standard_metadata);
        if (!hdr.ipv4.isValid()) {
            drop_reason = DropReason.UNKNOWN_ETHERTYPE;
        } else {
            if (!hdr.tenant.isValid()) {
                tenants.apply();
            }
            if (hdr.tenant.isValid()) {
                tenant_packets.count((bit<32>)hdr.tenant.number);
            }
            forwarding.apply(hdr, meta, standard_metadata, drop_reason);
        }
        if (drop_reason != DropReason.NONE) {
            drops.apply(standard_metadata, drop_reason);
        }
    }
}

control TenantEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    EcnMarking() ecn;

    action remove_tenant() {
        hdr.ethernet.ether_type = hdr.tenant.next_ethertype;
        hdr.tenant.setInvalid();
    }

    table edge {
        key = { standard_metadata.egress_port: exact @name("port"); }
        actions = { remove_tenant; NoAction; }
        default_action = NoAction();
        size = 512;
    }

    apply {
        if (hdr.tenant.isValid()) {
            edge.apply();
        }
        ecn.apply(hdr, meta, standard_metadata);
    }
}

V1Switch(FabricParser(), FabricVerifyChecksum(), TenantIngress(), TenantEgress(), FabricComputeChecksum(),
         FabricDeparser()) main;
