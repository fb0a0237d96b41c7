#include "include/common.p4"
#define BLOOM_FILTER_ENTRIES 64
#define BLOOM_FILTER_BIT_WIDTH 1
struct meta_t { }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.proto) { 6: tcp; default: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  register<bit<BLOOM_FILTER_BIT_WIDTH>>(BLOOM_FILTER_ENTRIES) bloom_filter_1;
  register<bit<BLOOM_FILTER_BIT_WIDTH>>(BLOOM_FILTER_ENTRIES) bloom_filter_2;
  bit<32> reg_pos_one; bit<32> reg_pos_two; bit<1> reg_val_one; bit<1> reg_val_two; bit<1> direction;
  action drop() { mark_to_drop(sm); }
  action compute_hashes(ip_t a1, ip_t a2, bit<16> p1, bit<16> p2) {
    hash(reg_pos_one, HashAlgorithm.crc16, (bit<32>)0, { a1, a2, p1, p2, hdr.ipv4.proto }, (bit<32>)BLOOM_FILTER_ENTRIES);
    hash(reg_pos_two, HashAlgorithm.crc32, (bit<32>)0, { a1, a2, p1, p2, hdr.ipv4.proto }, (bit<32>)BLOOM_FILTER_ENTRIES);
  }
  action fwd(mac_t d, port_t port) { sm.egress_spec = port; hdr.eth.src = hdr.eth.dst; hdr.eth.dst = d; hdr.ipv4.ttl = hdr.ipv4.ttl - 1; }
  table lpm { key = { hdr.ipv4.dst: lpm; } actions = { fwd; drop; NoAction; } size = 1024; default_action = fwd(1, 2); }
  action set_direction(bit<1> dir) { direction = dir; }
  table check_ports { key = { sm.ingress_port: exact; sm.egress_spec: exact; } actions = { set_direction; NoAction; } size = 1024; default_action = NoAction(); }
  apply {
    if (hdr.ipv4.isValid()) {
      lpm.apply();
      if (hdr.tcp.isValid()) {
        direction = 0;
        if (check_ports.apply().hit) {
          if (direction == 0) compute_hashes(hdr.ipv4.src, hdr.ipv4.dst, hdr.tcp.sport, hdr.tcp.dport);
          else compute_hashes(hdr.ipv4.dst, hdr.ipv4.src, hdr.tcp.dport, hdr.tcp.sport);
          if (direction == 0) {
            if (hdr.tcp.ctrl[1:1] == 1) { bloom_filter_1.write(reg_pos_one, 1); bloom_filter_2.write(reg_pos_two, 1); }
          } else if (direction == 1) {
            bloom_filter_1.read(reg_val_one, reg_pos_one); bloom_filter_2.read(reg_val_two, reg_pos_two);
            if (reg_val_one != 1 || reg_val_two != 1) drop();
          }
        }
      }
    }
  }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr); } }
#include "include/package.p4"
