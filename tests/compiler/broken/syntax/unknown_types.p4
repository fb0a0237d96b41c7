#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> destination; }
ethernt_t top(in bit<8> v) { return v; }
control C(inout ethernet_t ethernet) {
    apply { ethernt_t other; nothing_like_it third; other = ethernet; }
}
