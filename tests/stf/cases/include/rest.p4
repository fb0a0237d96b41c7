// The parts of a switch that a case leaves alone; it comes at the end of the case.
CHECKSUM(VerifyNothing) {
    apply { }
}

CONTROL(LeaveUnchanged) {
    apply { }
}

CHECKSUM(UpdateNothing) {
    apply { }
}

control EmitAll(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers);
    }
}
