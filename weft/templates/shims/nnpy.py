"""Stands for nnpy, which controllers import for BMv2's notifications over nanomsg, even those that never use it.

Written by `weft shims`. There is no nanomsg: digests come over P4Runtime.
"""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from weft.p4utils.errors import UnsupportedCallError

    raise UnsupportedCallError(
        f"nnpy.{name}: there is no nanomsg; digests come over P4Runtime: SimpleSwitchP4RuntimeAPI.get_digest_list"
    )
