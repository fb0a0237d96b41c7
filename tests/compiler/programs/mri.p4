#include "include/common.p4"
#define MAX_HOPS 9
header ipv4_option_t { bit<1> copyFlag; bit<2> optClass; bit<5> option; bit<8> optionLength; }
header mri_t { bit<16> count; }
header switch_t { bit<32> swid; bit<32> qdepth; }
struct ingress_metadata_t { bit<16> count; }
struct parser_metadata_t { bit<16> remaining; }
struct meta_t { ingress_metadata_t ingress_metadata; parser_metadata_t parser_metadata; }
struct headers_t { ethernet_t eth; ipv4_t ipv4; ipv4_option_t ipv4_option; mri_t mri; switch_t[MAX_HOPS] swtraces; }
error { IPHeaderTooShort }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x800: parse_ipv4; default: accept; } }
  state parse_ipv4 { p.extract(hdr.ipv4); verify(hdr.ipv4.ihl >= 5, error.IPHeaderTooShort);
    transition select(hdr.ipv4.ihl) { 5: accept; default: parse_ipv4_option; } }
  state parse_ipv4_option { p.extract(hdr.ipv4_option); transition select(hdr.ipv4_option.option) { 31: parse_mri; default: accept; } }
  state parse_mri { p.extract(hdr.mri); meta.parser_metadata.remaining = hdr.mri.count;
    transition select(meta.parser_metadata.remaining) { 0: accept; default: parse_swtrace; } }
  state parse_swtrace { p.extract(hdr.swtraces.next); meta.parser_metadata.remaining = meta.parser_metadata.remaining - 1;
    transition select(meta.parser_metadata.remaining) { 0: accept; default: parse_swtrace; } }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action drop() { mark_to_drop(sm); }
  action fwd(mac_t d, port_t port) { sm.egress_spec = port; hdr.eth.src = hdr.eth.dst; hdr.eth.dst = d; hdr.ipv4.ttl = hdr.ipv4.ttl - 1; }
  table lpm { key = { hdr.ipv4.dst: lpm; } actions = { fwd; drop; NoAction; } size = 1024; default_action = NoAction(); }
  apply { if (hdr.ipv4.isValid()) lpm.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action add_swtrace(bit<32> swid) {
    hdr.mri.count = hdr.mri.count + 1;
    hdr.swtraces.push_front(1);
    hdr.swtraces[0].setValid();
    hdr.swtraces[0].swid = swid;
    hdr.swtraces[0].qdepth = (bit<32>)sm.deq_qdepth;
    hdr.ipv4.ihl = hdr.ipv4.ihl + 2;
    hdr.ipv4_option.optionLength = hdr.ipv4_option.optionLength + 8;
    hdr.ipv4.len = hdr.ipv4.len + 8;
  }
  table swtrace { actions = { add_swtrace; NoAction; } default_action = NoAction(); }
  apply { if (hdr.mri.isValid()) swtrace.apply(); }
}
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.eth); p.emit(hdr.ipv4); p.emit(hdr.ipv4_option); p.emit(hdr.mri); p.emit(hdr.swtraces); } }
#include "include/package.p4"
