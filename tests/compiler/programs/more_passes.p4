#include "include/common.p4"

struct meta_t { @field_list(1, 2) bit<8> n; @field_list(2) bit<16> k; bit<8> z; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; udp_t udp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; 17: udp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
  state udp { p.extract(hdr.udp); transition accept; }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {

 action again() { meta.n = meta.n + 1; resubmit_preserving_field_list(1); }
 table t { key = { meta.n: exact; hdr.ipv4.ttl: range; } actions = { again; NoAction; } const entries = { (0, 1..3): again(); (1, 2..3): again(); (0, _): NoAction(); } }
 apply { sm.egress_spec = 2; t.apply(); hdr.eth.src[7:0] = meta.n; }
}

control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply {
   if (sm.instance_type == 0) { meta.k = hdr.eth.type; if (hdr.ipv4.ttl == 1) { recirculate_preserving_field_list(2); hdr.ipv4.ttl = 7; } else if (hdr.ipv4.ttl == 2) clone_preserving_field_list(CloneType.E2E, 5, 2); }
   else { hdr.eth.dst[15:0] = meta.k; hdr.eth.dst[23:16] = (bit<8>)sm.instance_type; }
   if (sm.packet_length > 90) truncate((bit<32>)90);
 } }
#include "include/package.p4"
