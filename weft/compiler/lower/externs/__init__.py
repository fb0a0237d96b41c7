"""v1model's externs as BMv2 primitives (BMv2's simple_switch document and JSON format)."""
