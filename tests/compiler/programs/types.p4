#include "include/common.p4"

@p4runtime_translation("example.com/port", 32) type bit<9> PortId_t;
@p4runtime_translation("example.com/vrf", string) type bit<10> vrf_t;
type bit<48> Mac_t;
const vrf_t NO_VRF = (vrf_t)0;

struct meta_t { vrf_t vrf; PortId_t port; Mac_t mac; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; udp_t udp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; 17: udp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
  state udp { p.extract(hdr.udp); transition accept; }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {

 action set_vrf(vrf_t v) { meta.vrf = v; } action out_(PortId_t p, Mac_t m) { meta.port = p; sm.egress_spec = (bit<9>)p; hdr.eth.dst = (bit<48>)m; }
 table v { key = { meta.port: exact; (Mac_t)hdr.eth.src: exact @name("src"); } actions = { set_vrf; NoAction; } }
 @id(0x02000123) @p4runtime_foo table r { key = { meta.vrf: exact; hdr.ipv4.dst: lpm @format(IPV4_ADDRESS); } actions = { out_; NoAction; } const default_action = NoAction; }
 apply { meta.port = (PortId_t)sm.ingress_port; meta.vrf = NO_VRF; v.apply(); if (meta.vrf != NO_VRF) r.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
#include "include/package.p4"
