// A value of a `type` takes a number without a width, and nothing else without a cast; it has no arithmetic.
#include <core.p4>
#include <v1model.p4>
type bit<8> vrf_t;
type bit<8> port_t;
type bool flag_t;
const vrf_t sized = 8w1;
const vrf_t text = "1";
const vrf_t other = (port_t)1;
const flag_t number = 1;
const bit<8> back = (vrf_t)1;
control C(inout vrf_t vrf, inout port_t port, inout bit<8> byte, inout flag_t flag) {
    apply {
        vrf = byte;
        vrf = vrf + 1;
        vrf = port;
        if (vrf == byte) { }
        if (vrf == 8w1) { }
        if (vrf < 1) { }
        if (flag == 1) { }
        vrf = byte == 1 ? byte : 1;
    }
}
