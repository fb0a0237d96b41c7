// One of each thing that commands can change.
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
header ipv4_t { bit<32> src; bit<32> dst; bit<8> protocol; bit<8> ttl; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t { bit<2> colour; }

parser ParserImpl(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) odd_types;
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        transition select(hdr.ethernet.type) {
            odd_types: accept;
            default: accept;
        }
    }
}
control Verify(inout headers_t hdr, inout metadata_t meta) { apply {} }
control MyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<16>>(8) seen;
    counter(4, CounterType.packets_and_bytes) by_port;
    meter(4, MeterType.packets) police;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.packets) speeds;
    action_selector(HashAlgorithm.crc16, 16, 14) ways;
    action drop() { mark_to_drop(standard); }
    action forward(bit<48> mac, bit<9> port) { hdr.ethernet.dst = mac; standard.egress_spec = port; }
    action spread(bit<16> group) { standard.mcast_grp = group; }
    table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; spread; drop; NoAction; }
        default_action = drop();
        counters = hits;
        size = 64;
    }
    table acl {
        key = { hdr.ipv4.src: ternary; hdr.ipv4.protocol: range; hdr.ethernet.type: exact; hdr.ipv4.ttl: optional; }
        actions = { drop; NoAction; }
        default_action = NoAction();
    }
    action measure() { speeds.read(meta.colour); }
    table sources {
        key = { hdr.ipv4.dst: exact; }
        actions = { measure; NoAction; }
        default_action = NoAction();
        meters = speeds;
        support_timeout = true;
        size = 16;
    }
    table balanced {
        key = { hdr.ethernet.dst: exact; hdr.ipv4.src: selector; }
        actions = { forward; NoAction; }
        implementation = ways;
    }
    apply {
        police.execute_meter((bit<32>)(bit<9>)standard.ingress_port & 3, meta.colour);
        by_port.count((bit<32>)(bit<9>)standard.ingress_port & 3);
        seen.write(0, 16w1);
        ipv4_lpm.apply(); acl.apply(); balanced.apply();
        if (sources.apply().hit && meta.colour != 0) { drop(); }
        clone(CloneType.I2E, 5);
    }
}
control MyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply {} }
control Update(inout headers_t hdr, inout metadata_t meta) { apply {} }
control DeparserImpl(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(ParserImpl(), Verify(), MyIngress(), MyEgress(), Update(), DeparserImpl()) main;
