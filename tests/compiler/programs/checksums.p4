#include "include/common.p4"

struct meta_t { bit<16> l4len; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; udp_t udp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; 17: udp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
  state udp { p.extract(hdr.udp); transition accept; }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {

 apply { sm.egress_spec = 1; if (sm.checksum_error == 1) hdr.eth.src = 0xbad; meta.l4len = hdr.ipv4.len - 20; hdr.udp.dport = hdr.udp.dport + 1; if (sm.parser_error != error.NoError) { hdr.eth.dst = 0xe; if (sm.parser_error == error.PacketTooShort) hdr.eth.type = 3; } }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control V(inout headers_t hdr, inout meta_t meta) { apply {
 verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5, { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag, hdr.ipv4.ttl, hdr.ipv4.proto, hdr.ipv4.src, hdr.ipv4.dst }, hdr.ipv4.csum, HashAlgorithm.csum16);
 } }
control C(inout headers_t hdr, inout meta_t meta) { apply {
 update_checksum(true, { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn, hdr.ipv4.len, hdr.ipv4.id, hdr.ipv4.flags, hdr.ipv4.frag, hdr.ipv4.ttl, hdr.ipv4.proto, hdr.ipv4.src, hdr.ipv4.dst }, hdr.ipv4.csum, HashAlgorithm.csum16);
 update_checksum_with_payload(hdr.udp.isValid(), { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.proto, meta.l4len, hdr.udp.sport, hdr.udp.dport, hdr.udp.len }, hdr.udp.csum, HashAlgorithm.csum16);
 update_checksum(hdr.tcp.isValid() && (hdr.tcp.sport != 0 || hdr.tcp.dport == 80), { hdr.tcp.sport }, hdr.tcp.csum, HashAlgorithm.crc16);
 } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
