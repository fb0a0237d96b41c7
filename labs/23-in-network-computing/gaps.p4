// Four pieces of a switch that sums. Each stands below its line "// GAP NAME"; build.py puts it into Weft's program.
// What you may use is on the lab's page. Comments above the first gap are yours.

// GAP first
true // Is this the worker's first contribution to this round of the slot?
// GAP collect
// A contribution is counted: note its worker, and say whether the slot's lanes are added to the packet's.
bitmap = bitmap | worker_bit;
has_lanes = brings_lanes;
// GAP complete
// Have all come? Then say what becomes of the slot and of the packet. Outcome.ABSORB is what it is so far.
// GAP again
// A contribution that was counted before, to a slot that has been complete once. Who asks again lacks something.
drop_reason = DropReason.AGGREGATION_DUPLICATE;
