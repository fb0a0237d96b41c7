#include "include/common.p4"

struct meta_t { bit<8> color; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; udp_t udp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; 17: udp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
  state udp { p.extract(hdr.udp); transition accept; }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {

 meter(16, MeterType.bytes) m; register<bit<48>>(4) r; @name("ctr") counter(4, CounterType.packets) cc;
 action mark(bit<8> i) { m.execute_meter((bit<32>)i, meta.color); cc.count((bit<32>)(i & 3)); }
 action drop() { mark_to_drop(sm); }
 table t { key = { hdr.ipv4.dscp: exact; hdr.ipv4.isValid(): exact; } actions = { mark; drop; NoAction; } }
 table pol { key = { meta.color: exact; } actions = { drop; NoAction; } const entries = { 0: NoAction(); 1: NoAction(); 2: drop(); } const default_action = drop(); }
 apply { sm.egress_spec = 3; t.apply(); pol.apply(); bit<48> v; r.read(v, 1); r.write(1, v + 1); r.write(2, hdr.eth.src); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
#include "include/package.p4"
