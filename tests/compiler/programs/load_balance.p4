#include "include/common.p4"
struct meta_t { bit<14> ecmp_select; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action drop() { mark_to_drop(sm); }
  action set_ecmp_select(bit<16> ecmp_base, bit<32> ecmp_count) {
    hash(meta.ecmp_select, HashAlgorithm.crc16, ecmp_base, { hdr.ipv4.src, hdr.ipv4.dst, hdr.ipv4.proto, hdr.tcp.sport, hdr.tcp.dport }, ecmp_count);
  }
  action set_nhop(mac_t d, ip_t nh, port_t port) { hdr.eth.dst = d; hdr.ipv4.dst = nh; sm.egress_spec = port; hdr.ipv4.ttl = hdr.ipv4.ttl - 1; }
  table ecmp_group { key = { hdr.ipv4.dst: lpm; } actions = { drop; set_ecmp_select; } size = 1024; }
  table ecmp_nhop { key = { meta.ecmp_select: exact; } actions = { drop; set_nhop; } size = 2; }
  apply { if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 0) { ecmp_group.apply(); ecmp_nhop.apply(); } }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action rewrite_mac(bit<48> smac) { hdr.eth.src = smac; }
  action drop() { mark_to_drop(sm); }
  table send_frame { key = { sm.egress_port: exact; } actions = { rewrite_mac; drop; } size = 256; }
  apply { send_frame.apply(); }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.eth); p.emit(hdr.ipv4); p.emit(hdr.tcp); } }
#include "include/package.p4"
