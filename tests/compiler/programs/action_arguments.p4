#include "include/common.p4"

struct meta_t { bit<8> t; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; udp_t udp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; 17: udp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
  state udp { p.extract(hdr.udp); transition accept; }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {

 action add(inout bit<8> x, in bit<8> y, bit<8> z) { x = x + y + z; }
 action out_(out bit<8> x, bit<8> v) { x = v; if (v > 2) { x = 5; } }
 action cond(bit<8> v, bit<1> b) { if (b == 1 && hdr.ipv4.isValid()) { hdr.ipv4.ttl = v; } else if (v == 1) { exit; } hdr.ipv4.id = hdr.ipv4.id + 1; }
 action ret(bit<1> b) { if (b == 1) return; hdr.ipv4.proto = 9; }
 table t { key = { hdr.ipv4.ttl: exact; } actions = { add(meta.t, hdr.ipv4.proto); out_(hdr.ipv4.ttl); cond; ret; } default_action = cond(3, 1); }
 table u { key = { meta.t: exact; } actions = { add(hdr.ipv4.ttl, meta.t); @defaultonly ret; } default_action = ret(0); }
 apply { meta.t = 3; sm.egress_spec = 1; t.apply(); u.apply(); hdr.eth.src[7:0] = meta.t; add(hdr.ipv4.ttl, meta.t, 3); out_(hdr.ipv4.proto, 2); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
#include "include/package.p4"
