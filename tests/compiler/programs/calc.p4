#include "include/common.p4"
enum bit<8> op_t { plus = 0x2b, minus = 0x2d, and_ = 0x26, or_ = 0x7c, caret = 0x5e }
header calc_t { bit<8> p; bit<8> four; bit<8> ver; op_t op; bit<32> a; bit<32> b; bit<32> res; }
struct headers_t { ethernet_t eth; calc_t calc; }
struct meta_t { }
parser P(packet_in p, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  state start { p.extract(hdr.eth); transition select(hdr.eth.type) { 0x1234: check; default: accept; } }
  state check { transition select(p.lookahead<calc_t>().p, p.lookahead<calc_t>().four, p.lookahead<calc_t>().ver) { (0x50, 0x34, 1): calc; default: accept; } }
  state calc { p.extract(hdr.calc); transition accept; }
}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
  action send_back(bit<32> result) {
    bit<48> tmp; hdr.calc.res = result; tmp = hdr.eth.dst; hdr.eth.dst = hdr.eth.src; hdr.eth.src = tmp; sm.egress_spec = sm.ingress_port;
  }
  action add() { send_back(hdr.calc.a + hdr.calc.b); }
  action sub() { send_back(hdr.calc.a - hdr.calc.b); }
  action op_and() { send_back(hdr.calc.a & hdr.calc.b); }
  action op_or() { send_back(hdr.calc.a | hdr.calc.b); }
  action op_xor() { send_back(hdr.calc.a ^ hdr.calc.b); }
  action drop() { mark_to_drop(sm); }
  table calculate { key = { hdr.calc.op: exact; } actions = { add; sub; op_and; op_or; op_xor; drop; }
    const default_action = drop();
    const entries = { op_t.plus: add(); op_t.minus: sub(); op_t.and_: op_and(); op_t.or_: op_or(); op_t.caret: op_xor(); } }
  apply { if (hdr.calc.isValid()) calculate.apply(); else drop(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control D(packet_out p, in headers_t hdr) { apply { p.emit(hdr.eth); p.emit(hdr.calc); } }
#include "include/package.p4"
