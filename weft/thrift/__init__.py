"""BMv2's Thrift services of a Weft switch: a loopback port that turns their calls into P4Runtime's.

`bmv2` has the services, calls and types, in the form that `declaration` defines; `binary` writes and reads them.
`server` listens; `calls` carries the calls out on a session of simple_switch_CLI's commands, which `gateway` opens.
"""
