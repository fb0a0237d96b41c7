"""Numbers that Python shares with P4 and C++ have the value that the sources declare."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from weft.clocks import switch_configs
from weft.controller import services
from weft.controller.features import bolt, int_md, parameter_cache
from weft.controller.routing import srv6
from weft.controller.switch_cli import management, mirroring, replication
from weft.jobs.inference import transfer_job
from weft.jobs.traces import assembling
from weft.quantities import limits, traffic_classes
from weft.scenario import options, sections
from weft.switch.backend import checks
from weft.switch.daemon import config
from weft.switch.debug import replay
from weft.switch.oracle import switch
from weft.switch.stf import parser, target
from weft.topologies import addressing
from weft.traffic import aggregation_format, clear_to_send, transport_settings
from weft.traffic.commands import evs
from weft.wire.headers import aggregation, int_shim, notification, parameter, roce, service, valiant_shim

ROOT = Path(__file__).parent.parent
SHARED = [
    ("p4/include/lanes.p4", "AGGREGATION_LANES", aggregation_format.LANE_COUNT),
    ("p4/include/aggregation.p4", "SLOTS", options.MAX_SLOTS),
    ("p4/include/aggregation.p4", "AGGREGATION_VERSION", aggregation.HEADER_VERSION),
    ("p4/include/aggregation.p4", "KIND_CONTRIBUTION", aggregation.Kind.CONTRIBUTION),
    ("p4/include/aggregation.p4", "KIND_RESULT", aggregation.Kind.RESULT),
    *(
        ("p4/include/aggregation.p4", f"OPERATION_{name}", aggregation.Operation[name])
        for name in ("SUM", "MAX", "MIN", "AND", "OR", "XOR")
    ),
    *(
        ("p4/include/aggregation.p4", f"DATA_TYPE_{each.name}", each)
        for each in (aggregation.LaneType.INT32, aggregation.LaneType.INT16, aggregation.LaneType.INT8)
    ),
    ("p4/include/aggregation.p4", "DESTINATION_ALL", aggregation.ALL_WORKERS),
    ("p4/include/headers.p4", "CPU_PORT", addressing.CPU_PORT),
    ("p4/include/headers.p4", "CPU_PORT", target.CPU_PORT),
    ("p4/include/headers.p4", "CPU_PORT", switch.DEFAULT_CPU_PORT),
    ("p4/include/headers.p4", "ETHERTYPE_INT_SHIM", int_shim.INT_ETHERTYPE),
    ("p4/include/headers.p4", "ETHERTYPE_VALIANT", valiant_shim.VALIANT_ETHERTYPE),
    ("p4/include/headers.p4", "UDP_PORT_ROCE", roce.ROCE_UDP_PORT),
    ("p4/include/int_md/headers.p4", "INT_MD_REPORT_SESSION", int_md.REPORT_SESSION),
    ("p4/include/ev_routes/srv6_parser.p4", "SRV6_BLOCK", int(srv6.BLOCK.network_address) >> 96),
    ("p4/include/bolt/headers.p4", "NOTIFICATION_SESSION", bolt.NOTIFICATION_SESSION),
    ("p4/include/headers.p4", "QP_AGGREGATION", aggregation.CONTRIBUTION_QP),
    ("p4/include/headers.p4", "QP_MULTICAST", aggregation.RESULT_QP),
    ("p4/include/headers.p4", "QP_MULTICAST", service.ANSWER_QP),
    ("p4/include/services/headers.p4", "QP_SERVICE", service.REQUEST_QP),
    ("p4/include/services/parameter_headers.p4", "QP_PARAMETER_STORE", parameter.PARAMETER_STORE_QP),
    ("p4/include/services/parameter_headers.p4", "QP_PARAMETER_CLIENT", parameter.PARAMETER_CLIENT_QP),
    ("p4/include/services/parameter_cache.p4", "CACHE_ENTRIES", parameter_cache.MAX_CACHED_BLOCKS),
    ("p4/include/services/parameter_cache.p4", "PARAMETER_VERSION", parameter.HEADER_VERSION),
    ("p4/include/services/parameter_cache.p4", "PARAMETER_CACHED", parameter.PARAMETER_CACHED),
    *(("p4/include/services/parameter_cache.p4", f"PARAMETER_{each.name}", each) for each in parameter.ParameterKind),
    ("p4/include/services/synchronisation.p4", "SERVICE_CELLS", services.MAX_CELLS),
    ("p4/include/services/synchronisation.p4", "SERVICE_CLIENT_ENTRIES", services.MAX_CLIENT_ENTRIES),
    ("p4/include/services/synchronisation.p4", "SERVICE_VERSION", service.HEADER_VERSION),
    ("p4/include/services/synchronisation.p4", "SERVICE_REQUEST", service.Kind.REQUEST),
    ("p4/include/services/synchronisation.p4", "SERVICE_ANSWER", service.Kind.ANSWER),
    ("engine/packets/roce_formats.hpp", "kEtherTypeIntShim", int_shim.INT_ETHERTYPE),
    ("engine/packets/roce_formats.hpp", "kEtherTypeIntermediateShim", valiant_shim.VALIANT_ETHERTYPE),
    ("engine/packets/roce_formats.hpp", "kAggregationQueuePair", aggregation.CONTRIBUTION_QP),
    ("engine/packets/roce_formats.hpp", "kMaxAggregationLanes", max(aggregation.LANE_COUNTS)),
    ("engine/collectives/clear_to_send.hpp", "kMaxClearToSendWindow", int(clear_to_send.WINDOW.highest)),
    ("engine/collectives/clear_to_send.hpp", "kMinClearToSendChunkBytes", int(clear_to_send.CHUNK.lowest)),
    ("engine/hosts/switch_notification.hpp", "kUdpPort", notification.NOTIFICATION_UDP_PORT),
    ("engine/hosts/switch_notification.hpp", "kVersion", notification.NOTIFICATION_VERSION),
    ("engine/hosts/service_format.hpp", "kQueuePair", service.REQUEST_QP),
    ("engine/hosts/parameter_format.hpp", "kStoreQueuePair", parameter.PARAMETER_STORE_QP),
    ("engine/packets/packet.hpp", "kMaxPackets", sections.MAX_SEGMENT_PACKETS),
    ("engine/time/partitions.hpp", "kMaxWorkers", options.MAX_WORKERS),
    ("engine/links/deficit_round_robin.hpp", "kMaxClasses", traffic_classes.CLASSES),
    ("engine/links/transmit_port.hpp", "kMaxClasses", traffic_classes.CLASSES),
    ("engine/links/link_retry.hpp", "kMessageBytes", switch_configs.RETRY_MESSAGE_BYTES),
    ("engine/links/trimming.hpp", "kSmallestBytes", config.SMALLEST_TRIMMED_BYTES),
    ("engine/switch/abi.hpp", "kMaxPort", checks.MAX_PORT),
    ("engine/collectives/job_operations.hpp", "kMaxOperations", assembling.MAX_TRACE_OPERATIONS),
    ("engine/collectives/job_operations.hpp", "kMaxTransfer", transfer_job.MAX_MESSAGES - 1),
    ("engine/hosts/flow_generator.cpp", "kMaxFlowBytes", limits.MAX_FLOW_BYTES),
    ("engine/hosts/rc_config.cpp", "kMaxOutstandingReads", transport_settings.MAX_OUTSTANDING_READS),
    ("engine/hosts/uet/pdc_table.hpp", "kMostPdcs", transport_settings.MAX_PDCS),
    ("engine/hosts/mrc/mrc_endpoint.hpp", "kMostEvents", evs.MOST_EV_EVENTS),
    ("engine/hosts/mrc/mrc_config.hpp", "kMaxOutstanding", transport_settings.MAX_WIMM),
    ("engine/hosts/rc_request.hpp", "kMaxMessageBytes", limits.MAX_FLOW_BYTES),
]
"""Source, name in it, and value in Python."""
SAME_PORT = {
    "weft.switch.daemon.config": config.MAX_PORT,
    "weft.switch.stf.parser": parser.LARGEST_PORT,
    "weft.switch.debug.replay": replay.DROP_PORT,
    "weft.switch.oracle.switch": switch.DEFAULT_DROP_PORT,
    **{each.__name__: each._MOST_PORT for each in (management, mirroring, replication)},
}
_DECLARED = r"(?:^\s*#define\s+{0}\s+(.+)$)|(?:\b{0}\s*=\s*([^;,]+)[;,])"
_IN_COMMENT = re.compile(r"\((?:\w+::)?(\w+) in ((?:engine|p4)/\S+\.(?:hpp|cpp|p4))\)")


@cache
def text_of(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def declared(path: str, name: str) -> int:
    """Return the value of a constant of integers and of other constants of the table."""
    found = re.search(_DECLARED.format(re.escape(name)), text_of(path), re.MULTILINE)
    assert found is not None, f"{path} declares no {name}"
    expression = re.sub(r"//.*", "", found[1] or found[2])
    expression = re.sub(r"(?:uint64_t|int64_t)\{(\w+)\}", r"\1", expression).replace("'", "")
    expression = re.sub(r"\b(0[xX][0-9a-fA-F]+|\d+)(?:u|U|l|L|ll|ull|ULL)+\b", r"\1", expression)
    of = {each: str(declared(where, each)) for where, each, _ in SHARED if each in expression and each != name}
    for each, value in of.items():
        expression = re.sub(rf"\b{each}\b", value, expression)
    assert re.fullmatch(r"[0-9a-fA-FxX+\-*/()<\s]+", expression), f"{path}: {name} is {expression!r}"
    return int(eval(expression))


@pytest.mark.parametrize(("path", "name", "value"), SHARED, ids=lambda each: str(each))
def test_python_has_the_declared_value(path: str, name: str, value: int) -> None:
    assert declared(path, name) == value


def test_a_declaration_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AssertionError, match=r"partitions\.hpp declares no kMaxDragons"):
        declared("engine/time/partitions.hpp", "kMaxDragons")


def test_ports_end_alike_in_all_of_python() -> None:
    assert set(SAME_PORT.values()) == {checks.MAX_PORT}


def test_comments_name_constants_of_the_table() -> None:
    """A comment `(kMaxWorkers in engine/time/partitions.hpp)` promises that someone compares the two."""
    compared = {(name, path) for path, name, _ in SHARED}
    named = {
        (found[1], found[2])
        for path in (ROOT / "weft").rglob("*.py")
        for found in _IN_COMMENT.finditer(path.read_text(encoding="utf-8"))
    }
    assert named
    assert named <= compared
