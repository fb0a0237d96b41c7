#include "include/common.p4"
struct learn_t { mac_t srcAddr; port_t ingress_port; }
struct meta_t { learn_t learn; bit<1> known; }
struct headers_t { ethernet_t eth; vlan_t[2] vlan; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x8100 &&& 0xff00: vlan; 0x9100: vlan; default: accept; } }
  state vlan { p.extract(hdr.vlan.next); transition select(hdr.vlan.last.type) { 0x8100: vlan; default: accept; } }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action learn() { meta.learn.srcAddr = hdr.eth.src; meta.learn.ingress_port = sm.ingress_port; digest<learn_t>(1, meta.learn); }
  action forward(port_t p) { sm.egress_spec = p; }
  action bcast(bit<16> g) { sm.mcast_grp = g; }
  action drop() { mark_to_drop(sm); }
  action pop() { hdr.eth.type = hdr.vlan[0].type; hdr.vlan.pop_front(1); }
  action swap() { hdr.vlan[0].vid = hdr.vlan[0].vid ^ 12w0xf; }
  table smac { key = { hdr.eth.src: exact; } actions = { learn; NoAction; } size = 256; default_action = learn; support_timeout = true; }
  table dmac { key = { hdr.eth.dst: exact; hdr.vlan[0].vid: exact @name("vid"); hdr.vlan[0].isValid(): exact; } actions = { forward; bcast; @defaultonly drop; } default_action = drop; }
  table vlans { key = { hdr.vlan[0].isValid(): exact @name("v0"); hdr.vlan[1].isValid(): exact @name("v1"); } actions = { NoAction; drop; pop; swap; }
    const default_action = NoAction; const entries = { (true, true) : pop(); (true, false): swap(); (false, true): drop(); } }


  apply { smac.apply(); if (dmac.apply().miss) bcast(2); vlans.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { if (sm.ingress_port == sm.egress_port) mark_to_drop(sm); } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
#include "include/package.p4"
