#include "include/common.p4"
@controller_header("packet_in") header packet_in_t { bit<9> ingress_port; bit<7> _pad; bit<8> reason; }
@controller_header("packet_out") header packet_out_t { bit<9> egress_port; bit<7> _pad; }
struct meta_t { @field_list(1) bit<8> reason; }
struct headers_t { packet_in_t pin; packet_out_t pout; ethernet_t eth; ipv4_t ipv4; }
#define CPU 510
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { transition select(sm.ingress_port) { CPU: pout; default: eth; } }
  state pout { p.extract(hdr.pout); transition eth; }
  state eth { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action to_cpu(bit<8> reason) { meta.reason = reason; sm.egress_spec = CPU; }
  action copy_to_cpu(bit<8> reason) { meta.reason = reason; clone_preserving_field_list(CloneType.I2E, 100, 1); }
  action fwd(port_t p) { sm.egress_spec = p; }
  action mc(bit<16> g) { sm.mcast_grp = g; }
  table acl { key = { hdr.eth.dst: ternary; hdr.eth.type: ternary; hdr.ipv4.src: ternary; hdr.ipv4.dst: optional; sm.ingress_port: optional; }
    actions = { to_cpu; copy_to_cpu; fwd; NoAction; @defaultonly mc; } const default_action = mc(1); }
  apply {
    if (hdr.pout.isValid()) { sm.egress_spec = hdr.pout.egress_port; hdr.pout.setInvalid(); exit; }
    acl.apply();
  }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  apply {
    if (sm.egress_port == CPU) { hdr.pin.setValid(); hdr.pin.ingress_port = sm.ingress_port; hdr.pin._pad = 0; hdr.pin.reason = meta.reason; }
    else if (sm.instance_type == 1) { hdr.pin = { sm.ingress_port, 0, meta.reason }; }
    if (sm.egress_rid != 0 && sm.ingress_port == sm.egress_port) mark_to_drop(sm);
  }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.pin); p.emit(hdr.eth); p.emit(hdr.ipv4); } }
#include "include/package.p4"
