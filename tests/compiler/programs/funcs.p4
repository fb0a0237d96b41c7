#include "include/common.p4"

bit<16> fold(in bit<32> x) { bit<32> y = (x >> 16) + (x & 0xffff); y = (y >> 16) + (y & 0xffff); return ~(bit<16>)y; }
T pick<T>(in bool c, in T a, in T b) { return c ? a : b; }
void swap<T>(inout T a, inout T b) { T t = a; a = b; b = t; }
bool both(in bool a, in bool b) { if (!a) return false; return b; }
int<16> sgn(in int<16> x) { if (x < 0) { return -1; } else if (x == 0) { return 0; } return 1; }

struct meta_t { int<16> s; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; udp_t udp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; 17: udp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
  state udp { p.extract(hdr.udp); transition accept; }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {

 action a(bit<32> v) { hdr.ipv4.csum = fold(hdr.ipv4.src + v); swap(hdr.eth.src, hdr.eth.dst); }
 table t { key = { hdr.ipv4.ttl & 0x0f: exact @name("low_ttl"); hdr.ipv4.src[15:8]: ternary; (bit<4>)hdr.ipv4.dscp + 1: range @name("q"); } actions = { a; NoAction; } }
 apply { sm.egress_spec = pick(hdr.tcp.isValid(), 9w1, 2); t.apply();
   if (both(hdr.ipv4.isValid(), hdr.ipv4.ttl > 3)) swap(hdr.ipv4.src, hdr.ipv4.dst);
   meta.s = (int<16>)hdr.ipv4.id - (int<16>)hdr.ipv4.len; hdr.ipv4.id = (bit<16>)sgn(meta.s >> 2);
   hdr.ipv4.len = hdr.ipv4.len |+| 0xfff0; hdr.ipv4.frag = (bit<13>)(int<13>)sgn(meta.s); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
#include "include/package.p4"
