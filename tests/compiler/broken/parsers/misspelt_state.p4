#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> v; }
parser P(packet_in packet, out h_t h) {
    state start { packet.extract(h); transition acept; }
}
