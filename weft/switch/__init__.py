"""The embedded P4 switch: BMv2 JSON in, packets through, P4Runtime for control."""
