#include "include/common.p4"
struct meta_t { bit<8> n; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; }
bit<8> bump(inout bit<8> x) { x = x + 1; return x; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); p.extract(hdr.ipv4); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action s(bit<8> v) { hdr.ipv4.proto = v; }
  action u(bit<8> v) { hdr.ipv4.ttl = v; }
  table masked { key = { bump(hdr.ipv4.ttl) & 7: exact @name("m"); bump(hdr.ipv4.proto)[3:0]: ternary @name("l"); bump(hdr.ipv4.ttl)[7:0]: exact @name("w"); } actions = { s; NoAction; } }
  table ordered { key = { hdr.ipv4.ttl: exact; bump(hdr.ipv4.ttl): ternary @name("b"); } actions = { s; u; NoAction; } }
  table twice { key = { bump(meta.n): exact @name("n"); } actions = { s; u; NoAction; } }
  apply {
    sm.egress_spec = 1;
    if (hdr.ipv4.isValid()) { masked.apply(); ordered.apply(); meta.n = hdr.ipv4.proto; twice.apply(); hdr.ipv4.dscp = meta.n[5:0]; }
  }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
#include "include/package.p4"
