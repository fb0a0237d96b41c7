control V(inout headers_t hdr, inout meta_t meta) { apply { } }
control C(inout headers_t hdr, inout meta_t meta) { apply { } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
