#include "include/common.p4"
struct meta_t { bit<13> reg_ix; bit<16> flowlet_id; bit<48> last; bit<48> diff; bit<14> ecmp_hash; bit<14> group; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; tcp_t tcp; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; _: accept; } }
  state ip { p.extract(hdr.ipv4); transition select(hdr.ipv4.frag, hdr.ipv4.proto) { (0, 6): tcp; _: accept; } }
  state tcp { p.extract(hdr.tcp); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  register<bit<16>>(8192) flowlet_to_id; register<bit<48>>(8192) ts;
  action drop() { mark_to_drop(sm); }
  action read_flowlet_registers() {
    hash(meta.reg_ix, HashAlgorithm.crc16, (bit<16>)0, { hdr.ipv4.src, hdr.ipv4.dst, hdr.tcp.sport, hdr.tcp.dport, hdr.ipv4.proto }, (bit<14>)8192);
    ts.read(meta.last, (bit<32>)meta.reg_ix);
    flowlet_to_id.read(meta.flowlet_id, (bit<32>)meta.reg_ix);
    ts.write((bit<32>)meta.reg_ix, sm.ingress_global_timestamp);
  }
  action update_flowlet_id() { bit<32> r; r = (bit<32>)hdr.tcp.seq % 64; meta.flowlet_id = (bit<16>)r; flowlet_to_id.write((bit<32>)meta.reg_ix, (bit<16>)meta.flowlet_id); }
  action ecmp_group(bit<14> g, bit<16> num) {
    hash(meta.ecmp_hash, HashAlgorithm.crc16, (bit<1>)0, { hdr.ipv4.src, hdr.ipv4.dst, meta.flowlet_id }, num);
    meta.group = g;
  }
  action set_nhop(mac_t d, port_t port) { hdr.eth.src = hdr.eth.dst; hdr.eth.dst = d; sm.egress_spec = port; hdr.ipv4.ttl = hdr.ipv4.ttl - 1; }
  table lpm { key = { hdr.ipv4.dst: lpm; } actions = { set_nhop; ecmp_group; drop; } size = 1024; default_action = drop; }
  table group_to_nhop { key = { meta.group: exact; meta.ecmp_hash: exact; } actions = { drop; set_nhop; } size = 1024; }
  apply {
    if (hdr.ipv4.isValid()) {
      @atomic {
        read_flowlet_registers();
        meta.diff = sm.ingress_global_timestamp - meta.last;
        if (meta.diff >= 48w0) update_flowlet_id();
      }
      switch (lpm.apply().action_run) { ecmp_group: { group_to_nhop.apply(); } default: { } }
    }
  }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.eth); p.emit(hdr.ipv4); p.emit(hdr.tcp); } }
#include "include/package.p4"
