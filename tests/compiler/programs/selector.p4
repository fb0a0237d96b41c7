#include "include/common.p4"

struct meta_t { bit<16> h; bit<2> c; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; udp_t udp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; 17: udp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
  state udp { p.extract(hdr.udp); transition accept; }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {

 action_selector(HashAlgorithm.crc16, 16, 14) sel; action_profile(8) prof;
 direct_meter<bit<2>>(MeterType.packets) dm; direct_counter(CounterType.bytes) dc;
 action set_port(port_t p) { sm.egress_spec = p; } action drop() { mark_to_drop(sm); }
 action metered(bit<8> x) { dm.read(meta.c); dc.count(); hdr.ipv4.ttl = x; }
 table a { key = { hdr.ipv4.dst: lpm; hdr.ipv4.src: selector; hdr.tcp.sport: selector; } actions = { set_port; drop; NoAction; } implementation = sel; size = 64; }
 table b { key = { hdr.ipv4.proto: exact; } actions = { set_port; drop; } implementation = prof; default_action = drop; }
 table c { key = { hdr.ipv4.src: ternary; } actions = { metered; NoAction; } meters = dm; counters = dc; default_action = NoAction; }
 apply { if (hdr.ipv4.isValid()) { if (!a.apply().hit && b.apply().hit) { c.apply(); } } }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
#include "include/package.p4"
