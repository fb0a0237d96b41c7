// Externs of v1model.p4's names with other methods and parameters.
#include <core.p4>
enum CounterType { packets, bytes }
extern counter { counter(bit<32> number, CounterType type); }
extern register<T> { register(bit<32> size); void clear(); }
extern void assert(@optional in bool check);
struct headers_t { }
struct metadata_t { }
struct standard_metadata_t { bit<9> egress_spec; }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { assert(); transition accept; }
}
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<8>>(4) cells;
    apply { cells.clear(); }
}
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(4, CounterType.bytes) counted;
    apply { }
}
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
parser Parser<H, M, S>(packet_in packet, out H hdr, inout M meta, inout S standard);
control Checksums<H, M>(inout H hdr, inout M meta);
control Pipeline<H, M, S>(inout H hdr, inout M meta, inout S standard);
control Deparser<H>(packet_out packet, in H hdr);
package V1Switch<H, M, S>(Parser<H, M, S> parse, Checksums<H, M> check, Pipeline<H, M, S> ingress,
    Pipeline<H, M, S> egress, Checksums<H, M> compute, Deparser<H> deparse);
V1Switch(P(), C(), I(), E(), C(), D()) main;
