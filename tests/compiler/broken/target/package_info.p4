// Annotations of main, whose values P4Info gives a type.
#include <core.p4>
#include <v1model.p4>
struct headers_t { }
struct metadata_t { }
parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { transition accept; }
}
control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { } }
@pkginfo(name = "right", version = VERSION, organization = 3)
@platform_property(multicast_group_table_size = "many", clone_session_table_size = 7)
V1Switch(P(), V(), I(), E(), C(), D()) main;
