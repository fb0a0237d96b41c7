// Chooses ports by members, groups and one-shot sets of action profiles; has a meter, a counter, a register, a value set.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> destination; bit<48> source; bit<16> ether_type; }
header ipv4_t { bit<96> before_addresses; bit<32> source; bit<32> destination; }

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t { bit<2> colour; bit<32> limit; }

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    value_set<bit<16>>(4) ip_types;
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ip_types: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) { apply {} }

control Choose(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) {
    action_selector(HashAlgorithm.crc16, 16, 16) ways;
    action_selector(HashAlgorithm.crc16, 16, 16) other_ways;
    register<bit<32>>(4) limits;
    counter(4, CounterType.packets_and_bytes) seen;
    meter(4, MeterType.packets) rates;
    direct_counter(CounterType.packets) of_entries;
    direct_meter<bit<2>>(MeterType.packets) of_hosts;

    action forward(bit<9> port, bit<48> mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.destination = mac;
    }
    action drop() { mark_to_drop(standard_metadata); }
    action count_host() { of_entries.count(); of_hosts.read(meta.colour); }

    table routes {
        key = { hdr.ipv4.destination: exact @name("address"); hdr.ipv4.source: selector; }
        actions = { forward; drop; }
        implementation = ways;
    }

    table one_shots {
        key = { hdr.ipv4.destination: exact @name("address"); hdr.ipv4.source: selector; }
        actions = { forward; drop; }
        implementation = other_ways;
    }

    table hosts {
        key = { hdr.ipv4.source: exact @name("address"); }
        actions = { count_host; NoAction; }
        counters = of_entries;
        meters = of_hosts;
    }

    apply {
        limits.read(meta.limit, 1);
        if (hdr.ipv4.isValid()) {
            seen.count(meta.limit);
            rates.execute_meter<bit<2>>(0, meta.colour);
            hosts.apply();
            if (!routes.apply().hit) {
                one_shots.apply();
            }
        } else {
            drop();
        }
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard_metadata) { apply {} }

control Deparse(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(Parse(), NoChecksum(), Choose(), NoEgress(), NoChecksum(), Deparse()) main;
