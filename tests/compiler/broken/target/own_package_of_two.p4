// A package of v1model.p4's name, with two blocks.
#include <core.p4>
struct headers_t { }
parser P(packet_in packet, out headers_t hdr) { state start { transition accept; } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
parser Parser<H>(packet_in packet, out H hdr);
control Deparser<H>(packet_out packet, in H hdr);
package V1Switch<H>(Parser<H> parse, Deparser<H> deparse);
V1Switch(P(), D()) main;
