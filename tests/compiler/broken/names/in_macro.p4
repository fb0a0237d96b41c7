#define LANE(i) lanes.lane_##i = missing;
header lanes_t { bit<32> lane_0; }
control C(inout lanes_t lanes) {
    apply { LANE(0) }
}
