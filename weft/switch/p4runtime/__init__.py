"""P4Runtime v1 over any `SwitchBackend`.

`Device` is the server's object for one switch, `serve` puts devices on gRPC.
"""
