#include <core.p4>
#include <v1model.p4>
typedef bit<48> mac_t;
typedef bit<32> ip_t;
typedef bit<9> port_t;
header ethernet_t { mac_t dst; mac_t src; bit<16> type; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<6> dscp; bit<2> ecn; bit<16> len; bit<16> id;
    bit<3> flags; bit<13> frag; bit<8> ttl; bit<8> proto; bit<16> csum; ip_t src; ip_t dst;
}
header tcp_t { bit<16> sport; bit<16> dport; bit<32> seq; bit<32> ack; bit<4> off; bit<3> res; bit<3> ecn;
  bit<6> ctrl; bit<16> window; bit<16> csum; bit<16> urg; }
header udp_t { bit<16> sport; bit<16> dport; bit<16> len; bit<16> csum; }
header vlan_t { bit<3> pcp; bit<1> dei; bit<12> vid; bit<16> type; }
