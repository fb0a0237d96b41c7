#include "include/common.p4"

enum color_t { RED, GREEN, BLUE }
enum bit<8> proto_t { ICMP = 1, TCP = 6, UDP = 17 }

struct meta_t { color_t c; proto_t p; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; udp_t udp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; 17: udp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
  state udp { p.extract(hdr.udp); transition accept; }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {

 action red() { meta.c = color_t.RED; } action green(bit<8> v) { meta.c = color_t.GREEN; hdr.ipv4.ttl = v; } action blue() { meta.c = color_t.BLUE; exit; }
 table t { key = { hdr.ipv4.dst: ternary; hdr.ipv4.proto: ternary; } actions = { red; green; blue; } const default_action = red(); 
   entries = { const priority = 10: (0x0a000001, 6): green(1); (0x0a000000 &&& 0xffffff00, _): blue(); priority = 5: (_, 1): red(); } }

 apply { sm.egress_spec = 1; meta.c = color_t.RED;
  switch (t.apply().action_run) { red: green: { hdr.ipv4.id = 1; } blue: { hdr.ipv4.id = 2; } }

  switch (hdr.ipv4.proto) { 6: { hdr.tcp.seq = 1; } 17: 1: { hdr.udp.len = 9; } default: { hdr.eth.type = 0x1111; } }
  meta.p = (proto_t)hdr.ipv4.proto;
  switch (meta.p) { proto_t.ICMP: { sm.egress_spec = 2; } proto_t.TCP: { sm.egress_spec = 3; return; } default: {} }
  switch (meta.c) { color_t.GREEN: { hdr.ipv4.ttl = 99; } color_t.RED: { hdr.ipv4.ttl = hdr.ipv4.ttl + 1; } }
 
 }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
#include "include/package.p4"
