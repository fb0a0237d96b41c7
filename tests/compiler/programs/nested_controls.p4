#include "include/common.p4"
struct meta_t { bool f; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; udp_t udp; }

control Count(inout bit<8> v, in bit<8> by)(bit<32> n) {
  counter(n, CounterType.packets) c; register<bit<8>>(n) last;
  action bump(bit<8> x) { v = v + by + x; } action none() { }
  table t { key = { v: exact @name("value"); by: ternary; } actions = { bump; none; } default_action = none; size = 16; }
  apply { c.count((bit<32>)(v & 3)); if (t.apply().hit) { last.write((bit<32>)(v & 3), by); return; } v = v - 1; }
}
control Two(inout headers_t hdr, in bool flag) { Count(4) inner; Count(8) other;
  apply { if (flag) inner.apply(hdr.ipv4.ttl, hdr.ipv4.proto); else other.apply(hdr.ipv4.proto, 3); } }



parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; 17: udp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
  state udp { p.extract(hdr.udp); transition accept; }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {

 Two() two; Count(4) top;

 apply { sm.egress_spec = 1; if (!hdr.ipv4.isValid()) { return; } meta.f = hdr.ipv4.src == hdr.ipv4.dst; two.apply(hdr, meta.f || hdr.tcp.isValid()); bit<8> x = hdr.ipv4.ttl; top.apply(x, 1); hdr.ipv4.id[7:0] = x; }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
#include "include/package.p4"
