"""`mrc.h` and `mrc_ctl.h`: they compile for C and C++, and have the layouts that OCP's have on 64-bit machines."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from weft.verbs import libraries

HEADERS = Path(__file__).parents[2] / "verbs" / "mrc" / "include"
_PROGRAM = """#include <mrc_ctl.h>
#include <stddef.h>
#ifdef __cplusplus
#define IS(type, bytes) static_assert(sizeof(struct type) == (bytes), #type)
#define AT(type, field, bytes) static_assert(offsetof(struct type, field) == (bytes), #field)
#else
#define IS(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
#define AT(type, field, bytes) _Static_assert(offsetof(struct type, field) == (bytes), #field)
#endif
"""
SIZES = {
    "mrc_device_attr": 20,
    "mrc_context_attr": 8,
    "mrc_qp_hint_attr": 140,
    "mrc_qp_hint_init_attr": 140,
    "mrc_qp_init_attr": 72,
    "mrc_qp_attr": 176,
    "mrc_async_event": 16,
    "mrc_ctl_device_attr": 72,
    "mrc_ctl_port_attr": 4,
    "mrc_ctl_ev_fmt_field": 1,
    "mrc_ctl_ev_fmt_profile_attr": 168,
    "mrc_ctl_ev": 33,
    "mrc_ctl_ev_field": 20,
    "mrc_ctl_ev_op_entry": 76,
    "mrc_ctl_ev_profile_attr": 216,
    "mrc_ctl_cc_profile_attr": 152,
    "mrc_ctl_cc_nscc_cfg": 52,
    "mrc_ctl_ev_event": 56,
    "mrc_ctl_ep_req": 88,
    "mrc_ctl_ep_rsp": 12,
}
OFFSETS = {
    ("mrc_device_attr", "mpr_attr"): 8,
    ("mrc_device_attr", "cap"): 16,
    ("mrc_qp_init_attr", "cap"): 24,
    ("mrc_qp_init_attr", "send_ops_flags"): 56,
    ("mrc_qp_init_attr", "protocol_version"): 64,
    ("mrc_qp_attr", "wimm"): 2,
    ("mrc_qp_attr", "timeout"): 6,
    ("mrc_qp_attr", "profile"): 8,
    ("mrc_qp_attr", "retry"): 24,
    ("mrc_qp_attr", "qp_hint"): 32,
    ("mrc_qp_attr", "cap"): 40,
    ("mrc_qp_attr", "vendor_cfg"): 44,
    ("mrc_ctl_device_attr", "cc"): 48,
    ("mrc_ctl_device_attr", "phy_port_mask"): 64,
    ("mrc_ctl_ev_profile_attr", "ev_op"): 40,
}
pytestmark = pytest.mark.skipif(
    not libraries.PRELOAD.exists() or shutil.which("cc") is None, reason="needs libibverbs-dev and a C compiler"
)


def compiled(program: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["cc", *options, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{HEADERS}", "-"]
    return subprocess.run(command, input=program, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("options", [("-xc", "-std=gnu11"), ("-xc++", "-std=c++14"), ("-xc++", "-std=c++20")])
def test_layouts(options: tuple[str, ...]) -> None:
    checks = [f"IS({name}, {size});" for name, size in SIZES.items()]
    checks += [f"AT({name}, {field}, {offset});" for (name, field), offset in OFFSETS.items()]
    done = compiled(_PROGRAM + "\n".join(checks) + "\n", *options)
    assert done.returncode == 0, done.stderr


def test_a_program_of_an_older_interface_has_its_events_without_state() -> None:
    older = "#define MRC_CTL_API_VER_USED MRC_CTL_API_VER(1, 0, 0)\n#include <mrc_ctl_api_ver.h>\n"
    done = compiled(older + _PROGRAM + "IS(mrc_ctl_ev_event, 48);\n", "-xc")
    assert done.returncode == 0, done.stderr


def test_a_version_that_is_too_new_is_refused() -> None:
    newer = "#define MRC_API_VER_USED MRC_API_VER(1, 0, 2)\n#include <mrc_api_ver.h>\n"
    assert "is not supported" in compiled(newer + _PROGRAM, "-xc").stderr
