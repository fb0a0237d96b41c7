#include "include/common.p4"
#define MAX_HOPS 10
#define MAX_PORTS 8
typedef bit<48> time_t;
header probe_t { bit<8> hop_cnt; }
header probe_data_t { bit<1> bos; bit<7> swid; bit<8> port; bit<32> byte_cnt; time_t last_time; time_t cur_time; }
header probe_fwd_t { bit<8> egress_spec; }
struct meta_t { bit<8> egress_spec; bit<8> remaining; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; probe_t probe; probe_data_t[MAX_HOPS] probe_data; probe_fwd_t[MAX_HOPS] probe_fwd; }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; 0x812: probe; default: accept; } }
  state ip { p.extract(hdr.ipv4); transition accept; }
  state probe { p.extract(hdr.probe); meta.remaining = hdr.probe.hop_cnt + 1;
    transition select(hdr.probe.hop_cnt) { 0: fwd; default: data; } }
  state data { p.extract(hdr.probe_data.next); transition select(hdr.probe_data.last.bos) { 1: fwd; default: data; } }
  state fwd { p.extract(hdr.probe_fwd.next); meta.remaining = meta.remaining - 1; meta.egress_spec = hdr.probe_fwd.last.egress_spec;
    transition select(meta.remaining) { 0: accept; default: fwd; } }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action drop() { mark_to_drop(sm); }
  action fwd(mac_t d, port_t port) { sm.egress_spec = port; hdr.eth.src = hdr.eth.dst; hdr.eth.dst = d; hdr.ipv4.ttl = hdr.ipv4.ttl - 1; }
  table lpm { key = { hdr.ipv4.dst: lpm; } actions = { fwd; drop; NoAction; } size = 1024; default_action = drop(); }
  apply { if (hdr.ipv4.isValid()) { lpm.apply(); } else if (hdr.probe.isValid()) { sm.egress_spec = (bit<9>)meta.egress_spec; hdr.probe.hop_cnt = hdr.probe.hop_cnt + 1; } }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  register<bit<32>>(MAX_PORTS) byte_cnt_reg;
  register<time_t>(MAX_PORTS) last_time_reg;
  action set_swid(bit<7> swid) { hdr.probe_data[0].swid = swid; }
  table swid { actions = { set_swid; NoAction; } default_action = NoAction(); }
  apply {
    bit<32> byte_cnt; bit<32> new_byte_cnt; time_t last_time; time_t cur_time = sm.egress_global_timestamp;
    byte_cnt_reg.read(byte_cnt, (bit<32>)sm.egress_port);
    byte_cnt = byte_cnt + sm.packet_length;
    new_byte_cnt = (hdr.probe.isValid()) ? 0 : byte_cnt;
    byte_cnt_reg.write((bit<32>)sm.egress_port, new_byte_cnt);
    if (hdr.probe.isValid()) {
      hdr.probe_data.push_front(1); hdr.probe_data[0].setValid();
      if (hdr.probe.hop_cnt == 1) hdr.probe_data[0].bos = 1; else hdr.probe_data[0].bos = 0;
      swid.apply();
      hdr.probe_data[0].port = (bit<8>)sm.egress_port;
      hdr.probe_data[0].byte_cnt = byte_cnt;
      last_time_reg.read(last_time, (bit<32>)sm.egress_port);
      last_time_reg.write((bit<32>)sm.egress_port, cur_time);
      hdr.probe_data[0].last_time = last_time; hdr.probe_data[0].cur_time = cur_time;
    }
  }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.eth); p.emit(hdr.ipv4); p.emit(hdr.probe); p.emit(hdr.probe_data); p.emit(hdr.probe_fwd); } }
#include "include/package.p4"
