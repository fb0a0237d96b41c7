"""P4_16 (v1model) compiler: BMv2 JSON and P4Info from source."""
