"""The Thrift services of BMv2's simple_switch.

Sources: behavioral-model, thrift_src/standard.thrift, simple_pre.thrift and simple_pre_lag.thrift, and
targets/simple_switch/thrift/simple_switch.thrift.
"""

from __future__ import annotations

from enum import IntEnum

from weft.thrift.declaration import (
    BINARY,
    BOOL,
    DOUBLE,
    I16,
    I32,
    I64,
    TEXT,
    Kind,
    ListOf,
    MapOf,
    Method,
    Optional,
    Service,
    call,
    service,
    struct,
)


class TableError(IntEnum):
    """Codes of InvalidTableOperation."""

    TABLE_FULL = 1
    INVALID_HANDLE = 2
    EXPIRED_HANDLE = 3
    COUNTERS_DISABLED = 4
    METERS_DISABLED = 5
    AGEING_DISABLED = 6
    INVALID_TABLE_NAME = 7
    INVALID_ACTION_NAME = 8
    WRONG_TABLE_TYPE = 9
    INVALID_MBR_HANDLE = 10
    MBR_STILL_USED = 11
    MBR_ALREADY_IN_GRP = 12
    MBR_NOT_IN_GRP = 13
    INVALID_GRP_HANDLE = 14
    GRP_STILL_USED = 15
    EMPTY_GRP = 16
    DUPLICATE_ENTRY = 17
    BAD_MATCH_KEY = 18
    INVALID_METER_OPERATION = 19
    DEFAULT_ACTION_IS_CONST = 20
    DEFAULT_ENTRY_IS_CONST = 21
    NO_DEFAULT_ENTRY = 22
    INVALID_ACTION_PROFILE_NAME = 23
    NO_ACTION_PROFILE_SELECTION = 24
    IMMUTABLE_TABLE_ENTRIES = 25
    BAD_ACTION_DATA = 26
    NO_TABLE_KEY = 27
    ERROR = 100


class CounterError(IntEnum):
    """Codes of InvalidCounterOperation."""

    INVALID_COUNTER_NAME = 1
    INVALID_INDEX = 2
    ERROR = 3


class SwapError(IntEnum):
    """Codes of InvalidSwapOperation."""

    CONFIG_SWAP_DISABLED = 1
    ONGOING_SWAP = 2
    NO_ONGOING_SWAP = 3


class MeterError(IntEnum):
    """Codes of InvalidMeterOperation."""

    INVALID_METER_NAME = 1
    INVALID_INDEX = 2
    BAD_RATES_LIST = 3
    INVALID_INFO_RATE_VALUE = 4
    INVALID_BURST_SIZE_VALUE = 5
    ERROR = 6


class RegisterError(IntEnum):
    """Codes of InvalidRegisterOperation."""

    INVALID_REGISTER_NAME = 1
    INVALID_INDEX = 2
    ERROR = 3


class ValueSetError(IntEnum):
    """Codes of InvalidParseVSetOperation."""

    INVALID_PARSE_VSET_NAME = 1
    ERROR = 2


class LearnError(IntEnum):
    """Codes of InvalidLearnOperation."""

    INVALID_LIST_ID = 1
    INVALID_LIST_NAME = 2
    ERROR = 3


class PortError(IntEnum):
    """Codes of InvalidDevMgrOperation."""

    ERROR = 1


class CrcError(IntEnum):
    """Codes of InvalidCrcOperation."""

    INVALID_CALCULATION_NAME = 1
    WRONG_TYPE_CALCULATION = 2
    INVALID_CONFIG = 3


class ToeplitzError(IntEnum):
    """Codes of InvalidToeplitzHashOperation."""

    INVALID_CALCULATION_NAME = 1
    WRONG_TYPE_CALCULATION = 2
    INVALID_KEY = 3


class IdError(IntEnum):
    """Codes of InvalidIdLookup."""

    INVALID_RESOURCE_TYPE = 0
    INVALID_RESOURCE_NAME = 1


class MulticastError(IntEnum):
    """Codes of InvalidMcOperation."""

    TABLE_FULL = 1
    INVALID_MGID = 2
    INVALID_MGRP_HANDLE = 3
    INVALID_L1_HANDLE = 4
    ERROR = 5


class MirroringError(IntEnum):
    """Codes of InvalidMirroringOperation."""

    SESSION_NOT_FOUND = 1


class MatchType(IntEnum):
    """How a key field is matched; selects the field of a BmMatchParam."""

    EXACT = 0
    LPM = 1
    TERNARY = 2
    VALID = 3
    RANGE = 4


class ActionType(IntEnum):
    """What a table's entry does; NONE is a default entry that is not set."""

    NONE = 0
    ACTION_DATA = 1
    MEMBER = 2
    GROUP = 3


class ResourceType(IntEnum):
    """Kinds of a program's objects that have ids."""

    MATCH_TABLE = 0
    ACTION_PROFILE = 1
    COUNTER = 2
    METER = 3
    REGISTER = 4
    LEARNING_LIST = 5


ACTION_DATA = ListOf(BINARY)
MATCH_PARAM = struct(
    "BmMatchParam",
    type=I32,
    exact=Optional(struct("BmMatchParamExact", key=BINARY)),
    lpm=Optional(struct("BmMatchParamLPM", key=BINARY, prefix_length=I32)),
    ternary=Optional(struct("BmMatchParamTernary", key=BINARY, mask=BINARY)),
    valid=Optional(struct("BmMatchParamValid", key=BOOL)),
    range=Optional(struct("BmMatchParamRange", start=BINARY, end_=BINARY)),
)
MATCH_PARAMS = ListOf(MATCH_PARAM)
ADD_OPTIONS = struct("BmAddEntryOptions", priority=Optional(I32))
COUNTER_VALUE = struct("BmCounterValue", bytes=I64, packets=I64)
RATES = ListOf(struct("BmMeterRateConfig", units_per_micros=DOUBLE, burst_size=I32))
PORT_INFO = struct("DevMgrPortInfo", port_num=I32, iface_name=TEXT, is_up=BOOL, extra=MapOf(TEXT, TEXT))
CRC16 = struct(
    "BmCrc16Config",
    polynomial=I16,
    initial_remainder=I16,
    final_xor_value=I16,
    data_reflected=BOOL,
    remainder_reflected=BOOL,
)
CRC32 = struct(
    "BmCrc32Config",
    polynomial=I32,
    initial_remainder=I32,
    final_xor_value=I32,
    data_reflected=BOOL,
    remainder_reflected=BOOL,
)
ACTION_ENTRY = struct(
    "BmActionEntry",
    action_type=I32,
    action_name=Optional(TEXT),
    action_data=Optional(ACTION_DATA),
    mbr_handle=Optional(I32),
    grp_handle=Optional(I32),
)
ENTRY = struct(
    "BmMtEntry",
    match_key=MATCH_PARAMS,
    options=ADD_OPTIONS,
    entry_handle=I32,
    action_entry=ACTION_ENTRY,
    life=Optional(struct("BmMtEntryLife", timeout_ms=I32, time_since_hit_ms=I32)),
)
MEMBER = struct("BmMtActProfMember", mbr_handle=I32, action_name=TEXT, action_data=ACTION_DATA)
GROUP = struct("BmMtActProfGroup", grp_handle=I32, mbr_handles=ListOf(I32))
CONFIG = struct(
    "BmConfig",
    device_id=I64,
    thrift_port=I32,
    notifications_socket=Optional(TEXT),
    elogger_socket=Optional(TEXT),
    debugger_socket=Optional(TEXT),
)
MIRRORING = struct("MirroringSessionConfig", port=Optional(I32), mgid=Optional(I32))


def _on_table(result: Kind | None, /, **arguments: Kind | Optional) -> Method:
    return call(result, TableError, cxt_id=I32, table_name=TEXT, **arguments)


def _on_profile(result: Kind | None, /, **arguments: Kind | Optional) -> Method:
    return call(result, TableError, cxt_id=I32, act_prof_name=TEXT, **arguments)


def _on_counter(result: Kind | None, /, **arguments: Kind | Optional) -> Method:
    return call(result, CounterError, cxt_id=I32, counter_name=TEXT, **arguments)


def _on_meter(result: Kind | None, /, **arguments: Kind | Optional) -> Method:
    return call(result, MeterError, cxt_id=I32, meter_array_name=TEXT, **arguments)


def _on_register(result: Kind | None, /, **arguments: Kind | Optional) -> Method:
    return call(result, RegisterError, cxt_id=I32, register_array_name=TEXT, **arguments)


def _on_value_set(result: Kind | None, /, **arguments: Kind | Optional) -> Method:
    return call(result, ValueSetError, cxt_id=I32, parse_vset_name=TEXT, **arguments)


def _on_list(**arguments: Kind | Optional) -> Method:
    return call(None, LearnError, cxt_id=I32, list_id=I32, **arguments)


STANDARD = service(
    bm_mt_get_num_entries=_on_table(I64),
    bm_mt_clear_entries=_on_table(None, reset_default_entry=BOOL),
    bm_mt_add_entry=_on_table(
        I32, match_key=MATCH_PARAMS, action_name=TEXT, action_data=ACTION_DATA, options=ADD_OPTIONS
    ),
    bm_mt_set_default_action=_on_table(None, action_name=TEXT, action_data=ACTION_DATA),
    bm_mt_reset_default_entry=_on_table(None),
    bm_mt_delete_entry=_on_table(None, entry_handle=I32),
    bm_mt_modify_entry=_on_table(None, entry_handle=I32, action_name=TEXT, action_data=ACTION_DATA),
    bm_mt_set_entry_ttl=_on_table(None, entry_handle=I32, timeout_ms=I32),
    bm_mt_act_prof_add_member=_on_profile(I32, action_name=TEXT, action_data=ACTION_DATA),
    bm_mt_act_prof_delete_member=_on_profile(None, mbr_handle=I32),
    bm_mt_act_prof_modify_member=_on_profile(None, mbr_handle=I32, action_name=TEXT, action_data=ACTION_DATA),
    bm_mt_act_prof_create_group=_on_profile(I32),
    bm_mt_act_prof_delete_group=_on_profile(None, grp_handle=I32),
    bm_mt_act_prof_add_member_to_group=_on_profile(None, mbr_handle=I32, grp_handle=I32),
    bm_mt_act_prof_remove_member_from_group=_on_profile(None, mbr_handle=I32, grp_handle=I32),
    bm_mt_act_prof_get_members=_on_profile(ListOf(MEMBER)),
    bm_mt_act_prof_get_member=_on_profile(MEMBER, mbr_handle=I32),
    bm_mt_act_prof_get_groups=_on_profile(ListOf(GROUP)),
    bm_mt_act_prof_get_group=_on_profile(GROUP, grp_handle=I32),
    bm_mt_indirect_add_entry=_on_table(I32, match_key=MATCH_PARAMS, mbr_handle=I32, options=ADD_OPTIONS),
    bm_mt_indirect_modify_entry=_on_table(None, entry_handle=I32, mbr_handle=I32),
    bm_mt_indirect_delete_entry=_on_table(None, entry_handle=I32),
    bm_mt_indirect_set_entry_ttl=_on_table(None, entry_handle=I32, timeout_ms=I32),
    bm_mt_indirect_set_default_member=_on_table(None, mbr_handle=I32),
    bm_mt_indirect_reset_default_entry=_on_table(None),
    bm_mt_indirect_ws_add_entry=_on_table(I32, match_key=MATCH_PARAMS, grp_handle=I32, options=ADD_OPTIONS),
    bm_mt_indirect_ws_modify_entry=_on_table(None, entry_handle=I32, grp_handle=I32),
    bm_mt_indirect_ws_set_default_group=_on_table(None, grp_handle=I32),
    bm_mt_read_counter=_on_table(COUNTER_VALUE, entry_handle=I32),
    bm_mt_reset_counters=_on_table(None),
    bm_mt_write_counter=_on_table(None, entry_handle=I32, value=COUNTER_VALUE),
    bm_mt_set_meter_rates=_on_table(None, entry_handle=I32, rates=RATES),
    bm_mt_get_meter_rates=_on_table(RATES, entry_handle=I32),
    bm_mt_get_entries=_on_table(ListOf(ENTRY)),
    bm_mt_get_entry=_on_table(ENTRY, entry_handle=I32),
    bm_mt_get_default_entry=_on_table(ACTION_ENTRY),
    bm_mt_get_entry_from_key=_on_table(ENTRY, match_key=MATCH_PARAMS, options=ADD_OPTIONS),
    bm_counter_read=_on_counter(COUNTER_VALUE, index=I32),
    bm_counter_reset_all=_on_counter(None),
    bm_counter_write=_on_counter(None, index=I32, value=COUNTER_VALUE),
    bm_learning_ack=_on_list(buffer_id=I64, sample_ids=ListOf(I32)),
    bm_learning_ack_buffer=_on_list(buffer_id=I64),
    bm_learning_set_timeout=_on_list(timeout_ms=I32),
    bm_learning_set_buffer_size=_on_list(nb_samples=I32),
    bm_load_new_config=call(None, SwapError, config_str=TEXT),
    bm_swap_configs=call(None, SwapError),
    bm_meter_array_set_rates=_on_meter(None, rates=RATES),
    bm_meter_set_rates=_on_meter(None, index=I32, rates=RATES),
    bm_meter_get_rates=_on_meter(RATES, index=I32),
    bm_register_read=_on_register(I64, idx=I32),
    bm_register_read_all=_on_register(ListOf(I64)),
    bm_register_write=_on_register(None, index=I32, value=I64),
    bm_register_write_range=_on_register(None, start_index=I32, end_index=I32, value=I64),
    bm_register_reset=_on_register(None),
    bm_parse_vset_add=_on_value_set(None, value=BINARY),
    bm_parse_vset_remove=_on_value_set(None, value=BINARY),
    bm_parse_vset_get=_on_value_set(ListOf(BINARY)),
    bm_parse_vset_clear=_on_value_set(None),
    bm_dev_mgr_add_port=call(None, PortError, iface_name=TEXT, port_num=I32, pcap_path=TEXT),
    bm_dev_mgr_remove_port=call(None, PortError, port_num=I32),
    bm_dev_mgr_show_ports=call(ListOf(PORT_INFO), PortError),
    bm_mgmt_get_info=call(CONFIG, None),
    bm_set_crc16_custom_parameters=call(None, CrcError, cxt_id=I32, calc_name=TEXT, crc16_config=CRC16),
    bm_set_crc32_custom_parameters=call(None, CrcError, cxt_id=I32, calc_name=TEXT, crc32_config=CRC32),
    bm_set_toeplitz_hash_key=call(None, ToeplitzError, cxt_id=I32, calc_name=TEXT, key=BINARY),
    bm_reset_state=call(None, None),
    bm_get_config=call(TEXT, None),
    bm_get_config_md5=call(BINARY, None),
    bm_get_id_from_name=call(I32, IdError, cxt_id=I32, resource_type=I32, resource_name=TEXT),
    bm_serialize_state=call(TEXT, None),
)


def _multicast(with_lags: bool) -> Service:
    """Return the service of the replication engine; with lags, nodes have a map of them as well."""
    lag_map: dict[str, Kind | Optional] = {"lag_map": TEXT} if with_lags else {}
    lag_calls = {
        "bm_mc_set_lag_membership": call(None, MulticastError, cxt_id=I32, lag_index=I16, port_map=TEXT),
    }
    return service(
        bm_mc_mgrp_create=call(I32, MulticastError, cxt_id=I32, mgrp=I32),
        bm_mc_mgrp_destroy=call(None, MulticastError, cxt_id=I32, mgrp_handle=I32),
        bm_mc_node_create=call(I32, MulticastError, cxt_id=I32, rid=I32, port_map=TEXT, **lag_map),
        bm_mc_node_associate=call(None, MulticastError, cxt_id=I32, mgrp_handle=I32, l1_handle=I32),
        bm_mc_node_dissociate=call(None, MulticastError, cxt_id=I32, mgrp_handle=I32, l1_handle=I32),
        bm_mc_node_destroy=call(None, MulticastError, cxt_id=I32, l1_handle=I32),
        bm_mc_node_update=call(None, MulticastError, cxt_id=I32, l1_handle=I32, port_map=TEXT, **lag_map),
        **(lag_calls if with_lags else {}),
        bm_mc_get_entries=call(TEXT, MulticastError, cxt_id=I32),
    )


SIMPLE_SWITCH = service(
    mirroring_mapping_add=call(I32, None, mirror_id=I32, egress_port=I32),
    mirroring_mapping_delete=call(I32, None, mirror_id=I32),
    mirroring_mapping_get_egress_port=call(I32, None, mirror_id=I32),
    mirroring_session_add=call(None, MirroringError, mirror_id=I32, config=MIRRORING),
    mirroring_session_delete=call(None, MirroringError, mirror_id=I32),
    mirroring_session_get=call(MIRRORING, MirroringError, mirror_id=I32),
    set_egress_priority_queue_depth=call(I32, None, port_num=I32, priority=I32, depth_pkts=I32),
    set_egress_queue_depth=call(I32, None, port_num=I32, depth_pkts=I32),
    set_all_egress_queue_depths=call(I32, None, depth_pkts=I32),
    set_egress_priority_queue_rate=call(I32, None, port_num=I32, priority=I32, rate_pps=I64),
    set_egress_queue_rate=call(I32, None, port_num=I32, rate_pps=I64),
    set_all_egress_queue_rates=call(I32, None, rate_pps=I64),
    get_time_elapsed_us=call(I64, None),
    get_time_since_epoch_us=call(I64, None),
)

SERVICES = {
    "standard": STANDARD,
    "simple_switch": SIMPLE_SWITCH,
    "simple_pre": _multicast(with_lags=False),
    "simple_pre_lag": _multicast(with_lags=True),
}
"""Services by the names under which simple_switch multiplexes them; in BMv2 itself `simple_pre` is absent."""
