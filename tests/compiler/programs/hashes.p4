#include "include/common.p4"

struct meta_t { bit<32> a; bit<16> b; bit<10> c; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; udp_t udp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; 17: udp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
  state udp { p.extract(hdr.udp); transition accept; }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {

 apply { sm.egress_spec = 2;
  hash(meta.a, HashAlgorithm.crc32, 32w0, { hdr.eth.src, hdr.eth.type, 3w5, 5w0 }, 64w0x100000000);
  hash(meta.b, HashAlgorithm.csum16, 16w10, { hdr.ipv4.src, hdr.ipv4.dst, 16w7 }, 32w1000);
  hash(meta.c, HashAlgorithm.identity, 10w0, { hdr.ipv4.id, hdr.ipv4.ttl }, 10w1023);
  hash(hdr.ipv4.len, HashAlgorithm.xor16, 16w1, { hdr.eth.src, hdr.eth.dst }, 16w77);
  hash(hdr.udp.csum, HashAlgorithm.crc16_custom, 16w1, { hdr.eth.src }, 16w0xffff);
  hdr.eth.src = meta.a ++ meta.b; hdr.eth.dst[9:0] = meta.c; }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
#include "include/package.p4"
