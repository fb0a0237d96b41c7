#include "include/common.p4"
header mpls_t { bit<20> label; bit<3> tc; bit<1> bos; bit<8> ttl; }
header ipv6_t { bit<4> v; bit<8> tc; bit<20> fl; bit<16> len; bit<8> nh; bit<8> hl; bit<128> src; bit<128> dst; }
struct meta_t { bit<16> vlan_type; bool routed; bit<128> key; }
struct headers_t { ethernet_t eth; vlan_t vlan; mpls_t[3] mpls; ipv4_t ipv4; ipv6_t ipv6; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  value_set<bit<16>>(4) tpids;
  state start { meta.routed = false; p.extract(hdr.eth); transition select(hdr.eth.type) { tpids: vlan; 0x8847: mpls; 0x800: ip; 0x86dd: ip6; default: accept; } }
  state vlan { p.extract(hdr.vlan); meta.vlan_type = hdr.vlan.type; transition select(meta.vlan_type) { 0x8847: mpls; 0x800: ip; 0x86dd: ip6; default: accept; } }
  state mpls { p.extract(hdr.mpls.next); transition select(hdr.mpls.last.bos) { 0: mpls; 1: nib; } }
  state nib { transition select(p.lookahead<bit<4>>()) { 4: ip; 6: ip6; } }
  state ip { p.extract(hdr.ipv4); transition accept; }
  state ip6 { p.extract(hdr.ipv6); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action drop() { mark_to_drop(sm); exit; }
  action push(bit<20> l) { hdr.mpls.push_front(1); hdr.mpls[0] = { l, 0, (bit<1>)(bit<1>)1, 64 }; hdr.eth.type = 0x8847; }
  action pop() { hdr.mpls.pop_front(1); }
  action swap(bit<20> l) { hdr.mpls[0].label = l; hdr.mpls[0].ttl = hdr.mpls[0].ttl |-| 1; }
  action route(port_t port, mac_t d) { meta.routed = true; sm.egress_spec = port; hdr.eth.dst = d; }
  table ilm { key = { hdr.mpls[0].label: exact; hdr.mpls[0].bos: exact; } actions = { pop; swap; drop; } default_action = drop; }
  table fec { key = { hdr.ipv4.dst: lpm; } actions = { push; route; NoAction; } }
  table v6 { key = { hdr.ipv6.dst: lpm; hdr.ipv6.nh: exact; } actions = { push; route; NoAction; } }
  table acl6 { key = { hdr.ipv6.src: ternary; hdr.ipv6.dst[127:64]: ternary @name("d64"); meta.key: optional; } actions = { drop; NoAction; } }
  apply { 
    sm.egress_spec = 3;
    if (hdr.mpls[0].isValid()) ilm.apply();
    if (!hdr.mpls[0].isValid()) { if (hdr.ipv4.isValid()) { fec.apply(); } else if (hdr.ipv6.isValid()) { meta.key = hdr.ipv6.src ^ hdr.ipv6.dst; v6.apply(); acl6.apply(); } else drop(); }
    if (hdr.vlan.isValid() && meta.routed) { hdr.eth.type = hdr.vlan.type; hdr.vlan.setInvalid(); }
  }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.eth); p.emit(hdr.vlan); p.emit(hdr.mpls); p.emit(hdr.ipv4); p.emit(hdr.ipv6); } }
#include "include/package.p4"
