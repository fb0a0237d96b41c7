// A package of v1model.p4's name, whose ingress has no standard metadata.
#include <core.p4>
struct headers_t { }
struct metadata_t { }
struct standard_metadata_t { bit<9> egress_spec; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { transition accept; }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
parser Parser<H, M, S>(packet_in packet, out H hdr, inout M meta, inout S standard);
control Checksums<H, M>(inout H hdr, inout M meta);
control Pipeline<H, M, S>(inout H hdr, inout M meta, inout S standard);
control Deparser<H>(packet_out packet, in H hdr);
package V1Switch<H, M, S>(Parser<H, M, S> parse, Checksums<H, M> check, Checksums<H, M> ingress,
    Pipeline<H, M, S> egress, Checksums<H, M> compute, Deparser<H> deparse);
V1Switch(P(), C(), C(), E(), C(), D()) main;
