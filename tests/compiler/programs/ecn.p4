#include "include/common.p4"
struct headers_t { ethernet_t eth; ipv4_t ipv4; }
struct meta_t { bit<16> l4; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { transition eth; }
  state eth { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.version, hdr.ipv4.ihl) { (4, 5): accept; (4, 6..15): accept; (_, _): reject; } }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action set_port(port_t port) { sm.egress_spec = port; hdr.ipv4.ttl = hdr.ipv4.ttl - 1; }
  action default_action_() { hdr.ipv4.dscp = 0; }
  action expedited() { hdr.ipv4.dscp = 46; sm.priority = 3; }
  table t { key = { hdr.ipv4.dst: lpm; } actions = { set_port; @defaultonly NoAction; } default_action = NoAction; }
  table qos { key = { hdr.ipv4.proto: ternary; hdr.ipv4.dscp: range @name("dscp"); } actions = { default_action_; expedited; NoAction; } default_action = default_action_(); }
  apply { if (hdr.ipv4.isValid()) { t.apply(); qos.apply(); } }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action mark_ecn() { hdr.ipv4.ecn = 3; }
  apply { if (hdr.ipv4.isValid() && (hdr.ipv4.ecn == 1 || hdr.ipv4.ecn == 2)) { if (sm.enq_qdepth >= 19w0) mark_ecn(); } }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.eth); p.emit(hdr.ipv4); } }
#include "include/package.p4"
