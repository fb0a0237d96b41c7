// Structured EVs: a field of the UDP source port chooses among equal next hops, by a table and without a hash.
//
// Each tier of switches has a field of its own, so a sender names a path by its source port. The tables are the
// controller's and never change (docs/spec/mrc.md).
#ifndef WEFT_STRUCTURED_EV_P4
#define WEFT_STRUCTURED_EV_P4

// Within Forwarding. `ev_field_of_switch` is keyless: its default action says which field is the switch's.
#define STRUCTURED_EV_TABLES \
    bit<16> ev_field = 0; \
    action set_ev_field(bit<8> shift, bit<16> mask) { \
        ev_field = (meta.flow.source_port >> shift) & mask; \
    } \
    table ev_field_of_switch { \
        actions = { set_ev_field; NoAction; } \
        default_action = NoAction(); \
        size = 1; \
    } \
    table ev_ports { \
        key = { \
            meta.ecmp_group: exact @name("group"); \
            ev_field: exact @name("field"); \
        } \
        actions = { set_next_hop; no_route; } \
        default_action = no_route(); \
        size = 65536; \
    }

#endif
