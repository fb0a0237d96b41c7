#include "include/common.p4"
#define MAX_HOPS 9
header srcRoute_t { bit<1> bos; bit<15> port; }
struct meta_t { }
struct headers_t { ethernet_t eth; srcRoute_t[MAX_HOPS] srcRoutes; ipv4_t ipv4; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x1234: sr; default: accept; } }
  state sr { p.extract(hdr.srcRoutes.next); transition select(hdr.srcRoutes.last.bos) { 1: ip; default: sr; } }
  state ip { p.extract(hdr.ipv4); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action drop() { mark_to_drop(sm); }
  action srcRoute_nhop() { sm.egress_spec = (bit<9>)hdr.srcRoutes[0].port; hdr.srcRoutes.pop_front(1); }
  action srcRoute_finish() { hdr.eth.type = 0x800; }
  action update_ttl() { hdr.ipv4.ttl = hdr.ipv4.ttl - 1; }
  apply {
    if (hdr.srcRoutes[0].isValid()) {
      if (hdr.srcRoutes[0].bos == 1) { srcRoute_finish(); }
      srcRoute_nhop();
      if (hdr.ipv4.isValid()) update_ttl();
    } else { drop(); }
  }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.eth); p.emit(hdr.srcRoutes); p.emit(hdr.ipv4); } }
#include "include/package.p4"
