#include "include/common.p4"

struct flow_t { ip_t src; ip_t dst; bit<8> proto; }
struct pair_t { flow_t fwd; flow_t rev; bool valid; }
const flow_t ZERO = { 0, 0, 0 };

struct meta_t { pair_t pair; flow_t f; tuple<bit<8>, bit<16>> tup; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; udp_t udp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; 17: udp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
  state udp { p.extract(hdr.udp); transition accept; }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {

 register<bit<72>>(16) state;
 apply { sm.egress_spec = 1;
  meta.f = { src = hdr.ipv4.src, dst = hdr.ipv4.dst, proto = hdr.ipv4.proto };
  meta.pair = { meta.f, ZERO, true }; meta.pair.rev = { meta.f.dst, meta.f.src, meta.f.proto };
  if (meta.pair.fwd == meta.pair.rev) hdr.ipv4.ttl = 1;
  flow_t t = meta.pair.rev; t.proto = 7; meta.pair = { fwd = t, ... };
  if (!meta.pair.valid) hdr.ipv4.src = meta.pair.fwd.src;
  meta.tup = { t.proto, hdr.ipv4.id }; hdr.ipv4.id = meta.tup[1] + 1;
  bit<72> s; state.read(s, (bit<32>)(hdr.ipv4.src[3:0])); s = s + (meta.pair.fwd.src ++ t.dst ++ t.proto); state.write((bit<32>)hdr.ipv4.src[3:0], s);
  hdr.eth.dst = s[47:0]; hdr.eth.src = (bit<48>)s[71:48];
  ipv4_t copy = hdr.ipv4; hdr.ipv4.setInvalid(); if (copy.isValid() && copy.ttl != 3) { hdr.ipv4 = copy; hdr.ipv4.ttl = copy.ttl + 1; }
  if (hdr.ipv4 == copy) hdr.eth.type[7:0] = 0xee;
 }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
#include "include/package.p4"
