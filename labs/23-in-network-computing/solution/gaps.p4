// GAP first
(bitmap & worker_bit) == 0
// GAP collect
if (newer) {
    bitmap = worker_bit;
    state = SLOT_COLLECTING;
    has_lanes = brings_lanes;
} else {
    bitmap = bitmap | worker_bit;
    if (has_lanes == 1) {
        combine = 0xFFFFFFFF;
    }
    has_lanes = has_lanes | brings_lanes;
}
// GAP complete
if (bitmap == job.full_bitmap) {
    if (job.is_root == 1) {
        state = SLOT_DONE;
        outcome = Outcome.MULTICAST;
    } else {
        state = SLOT_SENT_UP;
        outcome = Outcome.SEND_UP;
    }
}
// GAP again
combine = 0xFFFFFFFF;
outcome = state == SLOT_SENT_UP ? Outcome.SEND_UP : Outcome.REPLY;
