#include "include/common.p4"
header tunnel_t { bit<16> proto_id; bit<16> dst_id; }
struct headers_t { ethernet_t eth; tunnel_t tun; ipv4_t ipv4; }
struct meta_t { }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x1212: tun; 0x800: ip; default: accept; } }
  state tun { p.extract(hdr.tun); transition select(hdr.tun.proto_id) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  counter(8, CounterType.packets_and_bytes) ingressTunnelCounter;
  direct_counter(CounterType.packets_and_bytes) dc;
  action drop() { mark_to_drop(sm); }
  action ipv4_forward(mac_t d, port_t port) { sm.egress_spec = port; hdr.eth.src = hdr.eth.dst; hdr.eth.dst = d; hdr.ipv4.ttl = hdr.ipv4.ttl - 1; }
  action ingress_(bit<16> dst_id) { hdr.tun.setValid(); hdr.tun.dst_id = dst_id; hdr.tun.proto_id = hdr.eth.type; hdr.eth.type = 0x1212; ingressTunnelCounter.count((bit<32>)hdr.tun.dst_id); }
  action egress_(mac_t d, port_t port) { sm.egress_spec = port; hdr.eth.dst = d; hdr.eth.type = hdr.tun.proto_id; hdr.tun.setInvalid(); }
  action fwd(port_t port) { sm.egress_spec = port; }
  table lpm { key = { hdr.ipv4.dst: lpm; } actions = { ipv4_forward; ingress_; drop; NoAction; } size = 1024; default_action = NoAction(); counters = dc; }
  table exact_ { key = { hdr.tun.dst_id: exact; } actions = { fwd; egress_; drop; } size = 1024; default_action = drop(); }
  apply { if (hdr.ipv4.isValid() && !hdr.tun.isValid()) lpm.apply(); if (hdr.tun.isValid()) exact_.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
#include "include/package.p4"
