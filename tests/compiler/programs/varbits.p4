#include "include/common.p4"
header opt_t { varbit<320> data; }
header o_end { bit<8> kind; } header o_nop { bit<8> kind; } header o_mss { bit<8> kind; bit<8> len; bit<16> mss; }
header_union o_t { o_end end; o_nop nop; o_mss mss; }
struct meta_t { bit<8> left; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; opt_t opt; tcp_t tcp; o_t[4] o; }
error { BadOption, BadLen }
parser Opts(packet_in p, in tcp_t tcp, out o_t[4] o) {
  bit<7> bytes; bit<8> k;
  state start { verify(tcp.off >= 5, error.BadLen); bytes = ((bit<7>)tcp.off - 5) << 2; transition next; }
  state next { transition select(bytes) { 0: accept; default: one; } }
  state one { k = p.lookahead<bit<8>>(); transition select(k) { 0: end; 1: nop; 2: mss; default: bad; } }
  state end { p.extract(o.next.end); bytes = bytes - 1; transition next; }
  state nop { p.extract(o.next.nop); bytes = bytes - 1; transition next; }
  state mss { verify(bytes >= 4, error.BadLen); p.extract(o.next.mss); bytes = bytes - 4; transition next; }
  state bad { verify(false, error.BadOption); transition reject; }
}
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  Opts() opts;
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: ip; default: accept; } }
  state ip { p.extract(hdr.ipv4); p.extract(hdr.opt, (bit<32>)(((bit<16>)hdr.ipv4.ihl - 5) * 32)); transition select(hdr.ipv4.proto) { 6: tcp; default: accept; } }
  state tcp { p.extract(hdr.tcp); opts.apply(p, hdr.tcp, hdr.o); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action err(port_t p) { sm.egress_spec = p; }
  table e { key = { hdr.o[0].nop.isValid(): exact; } actions = { err; NoAction; } 
     const entries = { true: err(1); } const default_action = err(5); }
  apply { e.apply(); if (hdr.o[1].mss.isValid()) hdr.o[1].mss.mss = 77; if (hdr.o[0].nop.isValid()) hdr.o[0].end.setValid(); if (hdr.opt.isValid()) { opt_t c = hdr.opt; hdr.opt.setInvalid(); hdr.opt = c; } }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.eth); p.emit(hdr.ipv4); p.emit(hdr.opt); p.emit(hdr.tcp); p.emit(hdr.o); } }
#include "include/package.p4"
