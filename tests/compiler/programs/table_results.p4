#include "include/common.p4"

struct meta_t { bit<8> t; bit<4> lo; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; udp_t udp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; 17: udp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
  state udp { p.extract(hdr.udp); transition accept; }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {

 action n(bit<8> v) { meta.t = v; } action m() { hdr.ipv4.ttl = meta.t; }
 table t1 { key = { hdr.ipv4.ttl: exact; } actions = { n; m; NoAction; } }
 table t2 { key = { hdr.ipv4.proto: ternary; meta.t: ternary; } actions = { n; m; } default_action = m; }
 table t3 { actions = { n; m; } default_action = n(4); }
 table t4 { key = { meta.t[3:0]: exact @name("lo"); meta.t[7:4]: exact @name("hi"); } actions = { m; n; } }
 apply { sm.egress_spec = 1; meta.t = 1;
  bool h = t1.apply().hit; if (h || t2.apply().miss) { t3.apply(); } 
  if (meta.t == 2 ? h : !h) { hdr.eth.src = 5; } else { bool z = t4.apply().hit ? true : false; hdr.eth.dst[0:0] = (bit<1>)z; }
  hdr.eth.type = h ? 16w1 : 2; }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
#include "include/package.p4"
