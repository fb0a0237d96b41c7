-- Wireshark dissector of Weft's own formats: the INT shim (EtherType 0x88B5), the shim of routes by intermediates and
-- updates of credits (EtherType 0x88B6), and the headers of aggregation, of services and of parameter stores inside
-- RoCEv2 UD SEND-only packets; of the headers of MRC (OCP Multipath Reliable Connection), which Wireshark does not
-- know; and of Ultra Ethernet Transport (UET), which older versions do not know. Formats: docs/spec/frames.md,
-- aggregation.md, services.md, mrc.md and uet.md.
--
--   wireshark -X lua_script:docs/wireshark/weft.lua capture.pcap
--   tshark -X lua_script:docs/wireshark/weft.lua -o "weft_int.own_rates:11=133.33" -r capture.pcap
--
-- or copy it into the folder that Help > About > Folders names "Personal Lua Plugins".

-- Layouts follow from the descriptions in weft/wire/; `python -m weft.wire` in a checkout writes them anew.

-- made from weft/wire: constants
local INT_ETHERTYPE = 0x88B5
local VALIANT_ETHERTYPE = 0x88B6
local MAC_CONTROL_ADDRESS = "0180C2000001"
local CLASSES = 8
local UD_SEND_ONLY = 0x64
local CONTRIBUTION_QP = 0xA66000
local RESULT_QP = 0xFFFFFF
local LANE_BYTES = 4
local REQUEST_QP = 0xA66001
local ANSWER_QP = 0xFFFFFF
local PARAMETER_STORE_QP = 0xA66002
local PARAMETER_CLIENT_QP = 0xA66003
local NOTIFICATION_UDP_PORT = 17776
local UET_UDP_PORT = 4793
-- end

-- made from weft/wire: layouts
local INT_SHIM = {
  bytes = 6,
  { name = "version", bits = 4, label = "Version", fixed = 1 },
  { name = "echo", bits = 1, label = "Echo of the receiver" },
  { name = "overflow", bits = 1, label = "A hop found no room" },
  { name = "reserved", bits = 2, label = "Reserved", fixed = 0 },
  { name = "hop_slots", bits = 8, label = "Hop slots", fixed = 5 },
  { name = "next_ethertype", bits = 16, label = "Next EtherType", hex = true, names = { [2048] = "IPv4", [34525] = "IPv6" } },
  { name = "hop_count", bits = 4, label = "Hops stamped" },
  { name = "path_id", bits = 12, label = "Path id", hex = true },
}

local INT_HOP = {
  bytes = 8,
  { name = "rate_code", bits = 4, label = "Rate code", names = { [0] = "unknown", [1] = "1G", [2] = "10G", [3] = "25G", [4] = "40G", [5] = "50G", [6] = "100G", [7] = "200G", [8] = "400G", [9] = "800G", [10] = "1600G" } },
  { name = "timestamp_ns", bits = 24, label = "Timestamp (ns, modulo 2^24)" },
  { name = "tx_bytes", bits = 20, label = "Bytes sent by the port (modulo 2^27)", unit = 128 },
  { name = "queue_bytes", bits = 16, label = "Queue left behind (bytes)", unit = 80 },
}

local VALIANT_SHIM = {
  bytes = 6,
  { name = "version", bits = 4, label = "Version", fixed = 1 },
  { name = "reserved", bits = 12, label = "Reserved", fixed = 0 },
  { name = "intermediate", bits = 16, label = "Intermediate" },
  { name = "next_ethertype", bits = 16, label = "Next EtherType", hex = true, names = { [2048] = "IPv4", [34525] = "IPv6", [34997] = "INT shim" } },
}

local CREDIT_UPDATE = {
  bytes = 2,
  { name = "request", bits = 8, label = "Request", names = { [0] = "update", [1] = "request" } },
  { name = "enabled_lanes", bits = 8, label = "Enabled lanes", hex = true },
}

local CREDIT_LANE = {
  bytes = 4,
  { name = "reserved1", bits = 4, label = "Reserved1", fixed = 0 },
  { name = "sent_blocks", bits = 12, label = "Sent blocks" },
  { name = "reserved2", bits = 4, label = "Reserved2", fixed = 0 },
  { name = "limit_blocks", bits = 12, label = "Limit blocks" },
}

local AGGREGATION = {
  bytes = 20,
  { name = "version", bits = 4, label = "Version", fixed = 2 },
  { name = "kind", bits = 4, label = "Kind", names = { [0] = "contribution", [1] = "result" } },
  { name = "operation", bits = 8, label = "Operation", names = { [0] = "sum", [1] = "max", [2] = "min", [3] = "and", [4] = "or", [5] = "xor" } },
  { name = "job_id", bits = 16, label = "Job id" },
  { name = "epoch", bits = 16, label = "Epoch" },
  { name = "slot", bits = 16, label = "Slot" },
  { name = "round", bits = 32, label = "Round" },
  { name = "rank", bits = 16, label = "Rank among the parent's children" },
  { name = "lane_count", bits = 16, label = "Lanes" },
  { name = "data_type", bits = 8, label = "Data type", names = { [0] = "int32", [1] = "int16", [2] = "int8" } },
  { name = "flags", bits = 8, label = "Flags", hex = true },
  { name = "destination", bits = 16, label = "Destination", names = { [65535] = "all" } },
}

local SERVICE = {
  bytes = 32,
  { name = "version", bits = 4, label = "Version", fixed = 1 },
  { name = "kind", bits = 4, label = "Kind", names = { [0] = "request", [1] = "answer" } },
  { name = "operation", bits = 8, label = "Operation", names = { [0] = "barrier", [1] = "fetch_and_add", [2] = "compare_and_swap" } },
  { name = "group_id", bits = 16, label = "Group id" },
  { name = "epoch", bits = 16, label = "Epoch" },
  { name = "cell", bits = 16, label = "Cell" },
  { name = "sequence", bits = 32, label = "Sequence" },
  { name = "member", bits = 16, label = "Member" },
  { name = "flags", bits = 16, label = "Flags", fixed = 0 },
  { name = "operand", bits = 64, label = "Operand" },
  { name = "comparand", bits = 64, label = "Comparand" },
}

local PARAMETER = {
  bytes = 24,
  { name = "version", bits = 4, label = "Version", fixed = 1 },
  { name = "kind", bits = 4, label = "Kind", names = { [0] = "pull", [1] = "push", [2] = "value", [3] = "done" } },
  { name = "flags", bits = 8, label = "Flags" },
  { name = "group_id", bits = 16, label = "Group id" },
  { name = "epoch", bits = 16, label = "Epoch" },
  { name = "client", bits = 16, label = "Client" },
  { name = "block", bits = 32, label = "Block" },
  { name = "sequence", bits = 32, label = "Sequence" },
  { name = "block_version", bits = 32, label = "Block version" },
  { name = "reserved", bits = 32, label = "Reserved", fixed = 0 },
}

local NOTIFICATION = {
  bytes = 16,
  { name = "version", bits = 8, label = "Version", fixed = 1 },
  { name = "queue_pair", bits = 24, label = "Queue pair", hex = true },
  { name = "reserved", bits = 8, label = "Reserved", fixed = 0 },
  { name = "psn", bits = 24, label = "Packet sequence number" },
  { name = "queue_bytes", bits = 32, label = "Queue bytes" },
  { name = "rate_mbps", bits = 32, label = "Rate (Mb/s)" },
}

local MRC_BTH = {
  bytes = 12,
  { name = "opcode", bits = 8, label = "Opcode", hex = true },
  { name = "reserved1", bits = 2, label = "Reserved1", fixed = 0 },
  { name = "padcount", bits = 2, label = "Padcount" },
  { name = "version", bits = 4, label = "Version", fixed = 0 },
  { name = "pkey", bits = 16, label = "Pkey", hex = true },
  { name = "variant_reserved", bits = 8, label = "Variant reserved", fixed = 0 },
  { name = "dqpn", bits = 24, label = "Dqpn", hex = true },
  { name = "ackreq", bits = 1, label = "Ackreq" },
  { name = "reserved2", bits = 1, label = "Reserved2", fixed = 0 },
  { name = "rtx", bits = 1, label = "Rtx" },
  { name = "ts", bits = 1, label = "Ts" },
  { name = "invariant_reserved", bits = 4, label = "Invariant reserved", fixed = 0 },
  { name = "psn", bits = 24, label = "Psn" },
}

local MRC_METH = {
  bytes = 4,
  { name = "rqmsn", bits = 16, label = "Rqmsn" },
  { name = "msn", bits = 16, label = "Msn" },
}

local MRC_TSETH = {
  bytes = 4,
  { name = "tx_timestamp", bits = 16, label = "Tx timestamp" },
  { name = "tsr", bits = 1, label = "Tsr", names = { [0] = "128_ns", [1] = "implementation" } },
  { name = "reserved", bits = 11, label = "Reserved", fixed = 0 },
  { name = "ftype", bits = 4, label = "Ftype", names = { [0] = "none", [1] = "timestamp" } },
}

local MRC_RETH = {
  bytes = 16,
  { name = "va", bits = 64, label = "Va", hex = true },
  { name = "rkey", bits = 32, label = "Rkey", hex = true },
  { name = "dma_length", bits = 32, label = "Dma length" },
}

local MRC_IMMDT = {
  bytes = 4,
  { name = "immediate", bits = 32, label = "Immediate", hex = true },
}

local MRC_AETH = {
  bytes = 4,
  { name = "syndrome", bits = 8, label = "Syndrome", hex = true },
  { name = "msn", bits = 24, label = "Msn" },
}

local MRC_ERTH = {
  bytes = 16,
  { name = "type", bits = 4, label = "Type", fixed = 0 },
  { name = "next_header", bits = 5, label = "Next header", fixed = 0 },
  { name = "reserved1", bits = 5, label = "Reserved1", fixed = 0 },
  { name = "op", bits = 2, label = "Op", names = { [0] = "port_status_update", [1] = "ev_probe" } },
  { name = "reserved2", bits = 8, label = "Reserved2", fixed = 0 },
  { name = "vendor_info", bits = 8, label = "Vendor info", hex = true },
  { name = "port_status_mask", bits = 32, label = "Port status mask", hex = true },
  { name = "reserved3", bits = 32, label = "Reserved3", fixed = 0 },
  { name = "tx_timestamp", bits = 16, label = "Tx timestamp" },
  { name = "tsr", bits = 1, label = "Tsr", names = { [0] = "128_ns", [1] = "implementation" } },
  { name = "reserved4", bits = 11, label = "Reserved4", fixed = 0 },
  { name = "ftype", bits = 4, label = "Ftype", names = { [0] = "none", [1] = "timestamp" } },
}

local MRC_EETH = {
  bytes = 36,
  { name = "type", bits = 4, label = "Type", fixed = 0 },
  { name = "next_header", bits = 5, label = "Next header", fixed = 0 },
  { name = "reserved1", bits = 3, label = "Reserved1", fixed = 0 },
  { name = "op", bits = 2, label = "Op", names = { [0] = "port_status_update", [1] = "ev_probe" } },
  { name = "reserved2", bits = 2, label = "Reserved2", fixed = 0 },
  { name = "reserved3", bits = 16, label = "Reserved3", fixed = 0 },
  { name = "reserved4", bits = 64, label = "Reserved4", fixed = 0 },
  { name = "reserved5", bits = 64, label = "Reserved5", fixed = 0 },
  { name = "reserved6", bits = 64, label = "Reserved6", fixed = 0 },
  { name = "tx_timestamp", bits = 16, label = "Tx timestamp" },
  { name = "reserved7", bits = 16, label = "Reserved7", fixed = 0 },
  { name = "reserved8", bits = 32, label = "Reserved8", fixed = 0 },
}

local MRC_SETH = {
  bytes = 28,
  { name = "type", bits = 4, label = "Type", fixed = 0 },
  { name = "next_header", bits = 5, label = "Next header", fixed = 0 },
  { name = "m", bits = 2, label = "M", names = { [0] = "none", [1] = "skip_once", [2] = "always_skip" } },
  { name = "reserved1", bits = 3, label = "Reserved1", fixed = 0 },
  { name = "pr", bits = 1, label = "Pr" },
  { name = "reserved2", bits = 1, label = "Reserved2", fixed = 0 },
  { name = "ack_psn_offset", bits = 16, label = "Ack psn offset", signed = true },
  { name = "entropy", bits = 32, label = "Entropy", hex = true },
  { name = "spdcid", bits = 16, label = "Spdcid", hex = true },
  { name = "dpdcid", bits = 16, label = "Dpdcid", hex = true },
  { name = "reserved3", bits = 8, label = "Reserved3", fixed = 0 },
  { name = "cack_psn", bits = 24, label = "Cack psn" },
  { name = "cc_type", bits = 4, label = "Cc type" },
  { name = "cc_flags", bits = 4, label = "Cc flags", hex = true },
  { name = "mpr", bits = 8, label = "Mpr" },
  { name = "sack_offset", bits = 16, label = "Sack offset", signed = true },
  { name = "sack_bitmap", bits = 64, label = "Sack bitmap", hex = true },
}

local MRC_CCSTATE = {
  bytes = 8,
  { name = "tx_timestamp", bits = 16, label = "Tx timestamp" },
  { name = "reserved", bits = 1, label = "Reserved", fixed = 0 },
  { name = "ooo_count", bits = 15, label = "Ooo count" },
  { name = "restore_cwnd", bits = 1, label = "Restore cwnd" },
  { name = "rcv_cwnd_pen", bits = 7, label = "Rcv cwnd pen" },
  { name = "rcvd_bytes", bits = 24, label = "Received", unit = 256 },
}

local MRC_NETH = {
  bytes = 20,
  { name = "type", bits = 4, label = "Type", fixed = 0 },
  { name = "next_header", bits = 5, label = "Next header", fixed = 0 },
  { name = "reserved1", bits = 7, label = "Reserved1", fixed = 0 },
  { name = "nack_reason", bits = 8, label = "Nack reason", hex = true, names = { [1] = "trimmed", [2] = "trimmed_lasthop", [6] = "no_bitmap", [7] = "no_pkt_buffer", [10] = "no_resource", [11] = "psn_oor_window", [25] = "unexp_event" } },
  { name = "vendor_info", bits = 8, label = "Vendor info", hex = true },
  { name = "entropy", bits = 32, label = "Entropy", hex = true },
  { name = "spdcid", bits = 16, label = "Spdcid", hex = true },
  { name = "dpdcid", bits = 16, label = "Dpdcid", hex = true },
  { name = "reserved2", bits = 8, label = "Reserved2", fixed = 0 },
  { name = "nack_psn", bits = 24, label = "Nack psn" },
  { name = "cc_type", bits = 4, label = "Cc type" },
  { name = "cc_flags", bits = 4, label = "Cc flags", hex = true },
  { name = "reserved3", bits = 8, label = "Reserved3", fixed = 0 },
  { name = "tx_timestamp", bits = 16, label = "Tx timestamp" },
}

local MRC_PETH = {
  bytes = 16,
  { name = "type", bits = 4, label = "Type", fixed = 0 },
  { name = "next_header", bits = 5, label = "Next header", fixed = 0 },
  { name = "reserved1", bits = 15, label = "Reserved1", fixed = 0 },
  { name = "vendor_info", bits = 8, label = "Vendor info", hex = true },
  { name = "probe_id", bits = 16, label = "Probe id" },
  { name = "reserved2", bits = 16, label = "Reserved2", fixed = 0 },
  { name = "spdcid", bits = 16, label = "Spdcid", hex = true },
  { name = "dpdcid", bits = 16, label = "Dpdcid", hex = true },
  { name = "tx_timestamp", bits = 16, label = "Tx timestamp" },
  { name = "tsr", bits = 1, label = "Tsr", names = { [0] = "128_ns", [1] = "implementation" } },
  { name = "reserved3", bits = 11, label = "Reserved3", fixed = 0 },
  { name = "ftype", bits = 4, label = "Ftype", names = { [0] = "none", [1] = "timestamp" } },
}

local UET_REQUEST = {
  bytes = 12,
  { name = "type", bits = 5, label = "Type", names = { [2] = "rud_request", [3] = "rod_request", [13] = "rud_cc_request", [14] = "rod_cc_request" } },
  { name = "next_header", bits = 4, label = "Next header", names = { [0] = "none", [1] = "request_small", [2] = "request_medium", [3] = "request_standard", [4] = "response", [5] = "response_data", [6] = "response_data_small" } },
  { name = "reserved1", bits = 2, label = "Reserved1", fixed = 0 },
  { name = "retx", bits = 1, label = "Retx" },
  { name = "ackreq", bits = 1, label = "Ackreq" },
  { name = "syn", bits = 1, label = "Syn", fixed = 0 },
  { name = "reserved2", bits = 2, label = "Reserved2", fixed = 0 },
  { name = "clear_psn_offset", bits = 16, label = "Clear psn offset", signed = true },
  { name = "psn", bits = 32, label = "Psn" },
  { name = "spdcid", bits = 16, label = "Spdcid" },
  { name = "dpdcid", bits = 16, label = "Dpdcid" },
}

local UET_SYNREQUEST = {
  bytes = 12,
  { name = "type", bits = 5, label = "Type", names = { [2] = "rud_request", [3] = "rod_request", [13] = "rud_cc_request", [14] = "rod_cc_request" } },
  { name = "next_header", bits = 4, label = "Next header", names = { [0] = "none", [1] = "request_small", [2] = "request_medium", [3] = "request_standard", [4] = "response", [5] = "response_data", [6] = "response_data_small" } },
  { name = "reserved1", bits = 2, label = "Reserved1", fixed = 0 },
  { name = "retx", bits = 1, label = "Retx" },
  { name = "ackreq", bits = 1, label = "Ackreq" },
  { name = "syn", bits = 1, label = "Syn", fixed = 1 },
  { name = "reserved2", bits = 2, label = "Reserved2", fixed = 0 },
  { name = "clear_psn_offset", bits = 16, label = "Clear psn offset", signed = true },
  { name = "psn", bits = 32, label = "Psn" },
  { name = "spdcid", bits = 16, label = "Spdcid" },
  { name = "use_rsv_pdc", bits = 1, label = "Use rsv pdc" },
  { name = "reserved3", bits = 3, label = "Reserved3", fixed = 0 },
  { name = "psn_offset", bits = 12, label = "Psn offset" },
}

local UET_REQUESTCCSTATE = {
  bytes = 4,
  { name = "ccc_id", bits = 8, label = "Ccc id" },
  { name = "credit_target", bits = 24, label = "Credit target" },
}

local UET_ACK = {
  bytes = 12,
  { name = "type", bits = 5, label = "Type", names = { [7] = "ack", [8] = "ack_cc", [9] = "ack_ccx" } },
  { name = "next_header", bits = 4, label = "Next header", names = { [0] = "none", [1] = "request_small", [2] = "request_medium", [3] = "request_standard", [4] = "response", [5] = "response_data", [6] = "response_data_small" } },
  { name = "reserved1", bits = 1, label = "Reserved1", fixed = 0 },
  { name = "m", bits = 1, label = "M" },
  { name = "retx", bits = 1, label = "Retx" },
  { name = "probe", bits = 1, label = "Probe" },
  { name = "req", bits = 2, label = "Req", names = { [0] = "none", [1] = "clear", [2] = "close" } },
  { name = "reserved2", bits = 1, label = "Reserved2", fixed = 0 },
  { name = "ack_psn_offset", bits = 16, label = "Ack psn offset", signed = true },
  { name = "cack_psn", bits = 32, label = "Cack psn" },
  { name = "spdcid", bits = 16, label = "Spdcid" },
  { name = "dpdcid", bits = 16, label = "Dpdcid" },
}

local UET_ACKCC = {
  bytes = 12,
  { name = "cc_type", bits = 4, label = "Cc type", names = { [0] = "nscc", [1] = "credit" } },
  { name = "cc_flags", bits = 4, label = "Cc flags", hex = true },
  { name = "mpr", bits = 8, label = "Mpr" },
  { name = "sack_psn_offset", bits = 16, label = "Sack psn offset", signed = true },
  { name = "sack_bitmap", bits = 64, label = "Sack bitmap", hex = true },
}

local UET_NSCCSTATE = {
  bytes = 8,
  { name = "service_time", bits = 16, label = "Service time" },
  { name = "restore_cwnd", bits = 1, label = "Restore cwnd" },
  { name = "rcv_cwnd_pend", bits = 7, label = "Rcv cwnd pend" },
  { name = "rcvd_bytes", bits = 24, label = "Rcvd bytes" },
  { name = "ooo_count", bits = 16, label = "Ooo count" },
}

local UET_CREDITSTATE = {
  bytes = 8,
  { name = "credit", bits = 24, label = "Credit" },
  { name = "reserved", bits = 24, label = "Reserved", fixed = 0 },
  { name = "ooo_count", bits = 16, label = "Ooo count" },
}

local UET_OTHERCCSTATE = {
  bytes = 8,
  { name = "state", bits = 64, label = "State", hex = true },
}

local UET_CCXSTATE = {
  bytes = 16,
  { name = "state1", bits = 64, label = "State1", hex = true },
  { name = "state2", bits = 64, label = "State2", hex = true },
}

local UET_NACK = {
  bytes = 16,
  { name = "type", bits = 5, label = "Type", names = { [10] = "nack", [12] = "nack_ccx" } },
  { name = "next_header", bits = 4, label = "Next header", fixed = 0 },
  { name = "reserved1", bits = 1, label = "Reserved1", fixed = 0 },
  { name = "m", bits = 1, label = "M" },
  { name = "retx", bits = 1, label = "Retx" },
  { name = "nt", bits = 1, label = "Nt", names = { [0] = "rud_or_rod", [1] = "rudi" } },
  { name = "reserved2", bits = 3, label = "Reserved2", fixed = 0 },
  { name = "nack_code", bits = 8, label = "Nack code", hex = true, names = { [1] = "trimmed", [2] = "trimmed_lasthop", [3] = "trimmed_ack", [4] = "no_pdc_avail", [5] = "no_ccc_avail", [6] = "no_bitmap", [7] = "no_pkt_buffer", [8] = "no_gtd_del_avail", [9] = "no_ses_msg_avail", [10] = "no_resource", [11] = "psn_oor_window", [13] = "rod_ooo", [14] = "inv_dpdcid", [15] = "pdc_hdr_mismatch", [16] = "closing", [17] = "closing_in_err", [18] = "pkt_not_rcvd", [19] = "gtd_resp_unavail", [20] = "ack_with_data", [21] = "invalid_syn", [22] = "pdc_mode_mismatch", [23] = "new_start_psn", [24] = "rcvd_ses_procg", [25] = "unexp_event", [26] = "rcvr_infer_loss", [253] = "exp_nack_normal", [254] = "exp_nack_err", [255] = "exp_nack_fatal" } },
  { name = "vendor_code", bits = 8, label = "Vendor code", hex = true },
  { name = "nack_psn", bits = 32, label = "Nack psn" },
  { name = "spdcid", bits = 16, label = "Spdcid" },
  { name = "dpdcid", bits = 16, label = "Dpdcid" },
  { name = "nack_payload", bits = 32, label = "Nack payload", hex = true },
}

local UET_NACKCCX = {
  bytes = 16,
  { name = "nccx_type", bits = 4, label = "Nccx type" },
  { name = "state1", bits = 60, label = "State1", hex = true },
  { name = "state2", bits = 64, label = "State2", hex = true },
}

local UET_CONTROL = {
  bytes = 16,
  { name = "type", bits = 5, label = "Type", names = { [11] = "control" } },
  { name = "ctl_type", bits = 4, label = "Ctl type", names = { [0] = "noop", [1] = "ack_request", [2] = "clear_command", [3] = "clear_request", [4] = "close_command", [5] = "close_request", [6] = "probe", [7] = "credit", [8] = "credit_request", [9] = "negotiation" } },
  { name = "reserved1", bits = 1, label = "Reserved1", fixed = 0 },
  { name = "isrod", bits = 1, label = "Isrod" },
  { name = "retx", bits = 1, label = "Retx" },
  { name = "ackreq", bits = 1, label = "Ackreq" },
  { name = "syn", bits = 1, label = "Syn", fixed = 0 },
  { name = "reserved2", bits = 2, label = "Reserved2", fixed = 0 },
  { name = "probe_opaque", bits = 16, label = "Probe opaque", hex = true },
  { name = "psn", bits = 32, label = "Psn" },
  { name = "spdcid", bits = 16, label = "Spdcid" },
  { name = "dpdcid", bits = 16, label = "Dpdcid" },
  { name = "ctl_payload", bits = 32, label = "Ctl payload", hex = true },
}

local UET_SYNCONTROL = {
  bytes = 16,
  { name = "type", bits = 5, label = "Type", names = { [11] = "control" } },
  { name = "ctl_type", bits = 4, label = "Ctl type", names = { [0] = "noop", [1] = "ack_request", [2] = "clear_command", [3] = "clear_request", [4] = "close_command", [5] = "close_request", [6] = "probe", [7] = "credit", [8] = "credit_request", [9] = "negotiation" } },
  { name = "reserved1", bits = 1, label = "Reserved1", fixed = 0 },
  { name = "isrod", bits = 1, label = "Isrod" },
  { name = "retx", bits = 1, label = "Retx" },
  { name = "ackreq", bits = 1, label = "Ackreq" },
  { name = "syn", bits = 1, label = "Syn", fixed = 1 },
  { name = "reserved2", bits = 2, label = "Reserved2", fixed = 0 },
  { name = "probe_opaque", bits = 16, label = "Probe opaque", hex = true },
  { name = "psn", bits = 32, label = "Psn" },
  { name = "spdcid", bits = 16, label = "Spdcid" },
  { name = "use_rsv_pdc", bits = 1, label = "Use rsv pdc" },
  { name = "reserved3", bits = 3, label = "Reserved3", fixed = 0 },
  { name = "psn_offset", bits = 12, label = "Psn offset" },
  { name = "ctl_payload", bits = 32, label = "Ctl payload", hex = true },
}

local UET_RUDI = {
  bytes = 8,
  { name = "type", bits = 5, label = "Type", names = { [4] = "rudi_request", [5] = "rudi_response" } },
  { name = "next_header", bits = 4, label = "Next header", names = { [0] = "none", [1] = "request_small", [2] = "request_medium", [3] = "request_standard", [4] = "response", [5] = "response_data", [6] = "response_data_small" } },
  { name = "reserved1", bits = 1, label = "Reserved1", fixed = 0 },
  { name = "m", bits = 1, label = "M" },
  { name = "retx", bits = 1, label = "Retx" },
  { name = "reserved2", bits = 4, label = "Reserved2", fixed = 0 },
  { name = "reserved3", bits = 16, label = "Reserved3", fixed = 0 },
  { name = "pkt_id", bits = 32, label = "Pkt id" },
}

local UET_UUD = {
  bytes = 4,
  { name = "type", bits = 5, label = "Type", names = { [6] = "uud_request" } },
  { name = "next_header", bits = 4, label = "Next header", names = { [0] = "none", [1] = "request_small", [2] = "request_medium", [3] = "request_standard", [4] = "response", [5] = "response_data", [6] = "response_data_small" } },
  { name = "flags", bits = 7, label = "Flags", fixed = 0 },
  { name = "reserved", bits = 16, label = "Reserved", fixed = 0 },
}

local UET_STANDARD = {
  bytes = 44,
  { name = "reserved1", bits = 2, label = "Reserved1", fixed = 0 },
  { name = "opcode", bits = 6, label = "Opcode", names = { [0] = "no_op", [1] = "write", [2] = "read", [3] = "atomic", [4] = "fetching_atomic", [5] = "send", [6] = "rendezvous_send", [7] = "datagram_send", [9] = "tagged_send", [10] = "rendezvous_tsend", [13] = "tsend_atomic", [14] = "tsend_fetch_atomic", [15] = "msg_error" } },
  { name = "version", bits = 2, label = "Version", fixed = 0 },
  { name = "dc", bits = 1, label = "Dc" },
  { name = "ie", bits = 1, label = "Ie" },
  { name = "rel", bits = 1, label = "Rel", names = { [0] = "absolute", [1] = "relative" } },
  { name = "hd", bits = 1, label = "Hd" },
  { name = "eom", bits = 1, label = "Eom" },
  { name = "som", bits = 1, label = "Som", fixed = 1 },
  { name = "message_id", bits = 16, label = "Message id" },
  { name = "ri_generation", bits = 8, label = "Ri generation" },
  { name = "job_id", bits = 24, label = "Job id" },
  { name = "reserved2", bits = 4, label = "Reserved2", fixed = 0 },
  { name = "pid_on_fep", bits = 12, label = "Pid on fep" },
  { name = "reserved3", bits = 4, label = "Reserved3", fixed = 0 },
  { name = "resource_index", bits = 12, label = "Resource index" },
  { name = "buffer_offset", bits = 64, label = "Buffer offset" },
  { name = "initiator", bits = 32, label = "Initiator", hex = true },
  { name = "match_bits", bits = 64, label = "Match bits", hex = true },
  { name = "header_data", bits = 64, label = "Header data", hex = true },
  { name = "request_length", bits = 32, label = "Request length" },
}

local UET_CONTINUATION = {
  bytes = 44,
  { name = "reserved1", bits = 2, label = "Reserved1", fixed = 0 },
  { name = "opcode", bits = 6, label = "Opcode", names = { [0] = "no_op", [1] = "write", [2] = "read", [3] = "atomic", [4] = "fetching_atomic", [5] = "send", [6] = "rendezvous_send", [7] = "datagram_send", [9] = "tagged_send", [10] = "rendezvous_tsend", [13] = "tsend_atomic", [14] = "tsend_fetch_atomic", [15] = "msg_error" } },
  { name = "version", bits = 2, label = "Version", fixed = 0 },
  { name = "dc", bits = 1, label = "Dc" },
  { name = "ie", bits = 1, label = "Ie" },
  { name = "rel", bits = 1, label = "Rel", names = { [0] = "absolute", [1] = "relative" } },
  { name = "hd", bits = 1, label = "Hd" },
  { name = "eom", bits = 1, label = "Eom" },
  { name = "som", bits = 1, label = "Som", fixed = 0 },
  { name = "message_id", bits = 16, label = "Message id" },
  { name = "ri_generation", bits = 8, label = "Ri generation" },
  { name = "job_id", bits = 24, label = "Job id" },
  { name = "reserved2", bits = 4, label = "Reserved2", fixed = 0 },
  { name = "pid_on_fep", bits = 12, label = "Pid on fep" },
  { name = "reserved3", bits = 4, label = "Reserved3", fixed = 0 },
  { name = "resource_index", bits = 12, label = "Resource index" },
  { name = "buffer_offset", bits = 64, label = "Buffer offset" },
  { name = "initiator", bits = 32, label = "Initiator", hex = true },
  { name = "match_bits", bits = 64, label = "Match bits", hex = true },
  { name = "reserved4", bits = 18, label = "Reserved4", fixed = 0 },
  { name = "payload_length", bits = 14, label = "Payload length" },
  { name = "message_offset", bits = 32, label = "Message offset" },
  { name = "request_length", bits = 32, label = "Request length" },
}

local UET_DEFERRABLE = {
  bytes = 44,
  { name = "reserved1", bits = 2, label = "Reserved1", fixed = 0 },
  { name = "opcode", bits = 6, label = "Opcode", names = { [8] = "deferrable_send", [11] = "deferrable_tsend" } },
  { name = "version", bits = 2, label = "Version", fixed = 0 },
  { name = "dc", bits = 1, label = "Dc" },
  { name = "ie", bits = 1, label = "Ie" },
  { name = "rel", bits = 1, label = "Rel", names = { [0] = "absolute", [1] = "relative" } },
  { name = "hd", bits = 1, label = "Hd" },
  { name = "eom", bits = 1, label = "Eom" },
  { name = "som", bits = 1, label = "Som", fixed = 1 },
  { name = "message_id", bits = 16, label = "Message id" },
  { name = "ri_generation", bits = 8, label = "Ri generation" },
  { name = "job_id", bits = 24, label = "Job id" },
  { name = "reserved2", bits = 4, label = "Reserved2", fixed = 0 },
  { name = "pid_on_fep", bits = 12, label = "Pid on fep" },
  { name = "reserved3", bits = 4, label = "Reserved3", fixed = 0 },
  { name = "resource_index", bits = 12, label = "Resource index" },
  { name = "initiator_token", bits = 32, label = "Initiator token", hex = true },
  { name = "target_token", bits = 32, label = "Target token", hex = true },
  { name = "initiator", bits = 32, label = "Initiator", hex = true },
  { name = "match_bits", bits = 64, label = "Match bits", hex = true },
  { name = "header_data", bits = 64, label = "Header data", hex = true },
  { name = "request_length", bits = 32, label = "Request length" },
}

local UET_DEFERRABLECONTINUATION = {
  bytes = 44,
  { name = "reserved1", bits = 2, label = "Reserved1", fixed = 0 },
  { name = "opcode", bits = 6, label = "Opcode", names = { [8] = "deferrable_send", [11] = "deferrable_tsend" } },
  { name = "version", bits = 2, label = "Version", fixed = 0 },
  { name = "dc", bits = 1, label = "Dc" },
  { name = "ie", bits = 1, label = "Ie" },
  { name = "rel", bits = 1, label = "Rel", names = { [0] = "absolute", [1] = "relative" } },
  { name = "hd", bits = 1, label = "Hd" },
  { name = "eom", bits = 1, label = "Eom" },
  { name = "som", bits = 1, label = "Som", fixed = 0 },
  { name = "message_id", bits = 16, label = "Message id" },
  { name = "ri_generation", bits = 8, label = "Ri generation" },
  { name = "job_id", bits = 24, label = "Job id" },
  { name = "reserved2", bits = 4, label = "Reserved2", fixed = 0 },
  { name = "pid_on_fep", bits = 12, label = "Pid on fep" },
  { name = "reserved3", bits = 4, label = "Reserved3", fixed = 0 },
  { name = "resource_index", bits = 12, label = "Resource index" },
  { name = "initiator_token", bits = 32, label = "Initiator token", hex = true },
  { name = "target_token", bits = 32, label = "Target token", hex = true },
  { name = "initiator", bits = 32, label = "Initiator", hex = true },
  { name = "match_bits", bits = 64, label = "Match bits", hex = true },
  { name = "reserved4", bits = 18, label = "Reserved4", fixed = 0 },
  { name = "payload_length", bits = 14, label = "Payload length" },
  { name = "message_offset", bits = 32, label = "Message offset" },
  { name = "request_length", bits = 32, label = "Request length" },
}

local UET_RESTART = {
  bytes = 44,
  { name = "reserved1", bits = 2, label = "Reserved1", fixed = 0 },
  { name = "opcode", bits = 6, label = "Opcode", names = { [12] = "deferrable_rtr" } },
  { name = "version", bits = 2, label = "Version", fixed = 0 },
  { name = "dc", bits = 1, label = "Dc" },
  { name = "ie", bits = 1, label = "Ie" },
  { name = "rel", bits = 1, label = "Rel", names = { [0] = "absolute", [1] = "relative" } },
  { name = "hd", bits = 1, label = "Hd" },
  { name = "eom", bits = 1, label = "Eom" },
  { name = "som", bits = 1, label = "Som" },
  { name = "message_id", bits = 16, label = "Message id" },
  { name = "ri_generation", bits = 8, label = "Ri generation" },
  { name = "job_id", bits = 24, label = "Job id" },
  { name = "reserved2", bits = 4, label = "Reserved2", fixed = 0 },
  { name = "pid_on_fep", bits = 12, label = "Pid on fep" },
  { name = "reserved3", bits = 4, label = "Reserved3", fixed = 0 },
  { name = "resource_index", bits = 12, label = "Resource index" },
  { name = "buffer_offset", bits = 64, label = "Buffer offset" },
  { name = "initiator", bits = 32, label = "Initiator", hex = true },
  { name = "initiator_token", bits = 32, label = "Initiator token", hex = true },
  { name = "target_token", bits = 32, label = "Target token", hex = true },
  { name = "header_data", bits = 64, label = "Header data", hex = true },
  { name = "request_length", bits = 32, label = "Request length" },
}

local UET_SMALL = {
  bytes = 20,
  { name = "reserved1", bits = 2, label = "Reserved1", fixed = 0 },
  { name = "opcode", bits = 6, label = "Opcode", names = { [0] = "no_op", [1] = "write", [2] = "read", [3] = "atomic", [4] = "fetching_atomic", [5] = "send", [6] = "rendezvous_send", [7] = "datagram_send", [8] = "deferrable_send", [9] = "tagged_send", [10] = "rendezvous_tsend", [11] = "deferrable_tsend", [12] = "deferrable_rtr", [13] = "tsend_atomic", [14] = "tsend_fetch_atomic", [15] = "msg_error" } },
  { name = "version", bits = 2, label = "Version", fixed = 0 },
  { name = "dc", bits = 1, label = "Dc" },
  { name = "ie", bits = 1, label = "Ie" },
  { name = "rel", bits = 1, label = "Rel", names = { [0] = "absolute", [1] = "relative" } },
  { name = "hd", bits = 1, label = "Hd", fixed = 0 },
  { name = "eom", bits = 1, label = "Eom" },
  { name = "som", bits = 1, label = "Som" },
  { name = "reserved4", bits = 2, label = "Reserved4", fixed = 0 },
  { name = "request_length", bits = 14, label = "Request length" },
  { name = "ri_generation", bits = 8, label = "Ri generation" },
  { name = "job_id", bits = 24, label = "Job id" },
  { name = "reserved2", bits = 4, label = "Reserved2", fixed = 0 },
  { name = "pid_on_fep", bits = 12, label = "Pid on fep" },
  { name = "reserved3", bits = 4, label = "Reserved3", fixed = 0 },
  { name = "resource_index", bits = 12, label = "Resource index" },
  { name = "buffer_offset", bits = 64, label = "Buffer offset" },
}

local UET_MEDIUM = {
  bytes = 32,
  { name = "reserved1", bits = 2, label = "Reserved1", fixed = 0 },
  { name = "opcode", bits = 6, label = "Opcode", names = { [0] = "no_op", [1] = "write", [2] = "read", [3] = "atomic", [4] = "fetching_atomic", [5] = "send", [6] = "rendezvous_send", [7] = "datagram_send", [8] = "deferrable_send", [9] = "tagged_send", [10] = "rendezvous_tsend", [11] = "deferrable_tsend", [12] = "deferrable_rtr", [13] = "tsend_atomic", [14] = "tsend_fetch_atomic", [15] = "msg_error" } },
  { name = "version", bits = 2, label = "Version", fixed = 0 },
  { name = "dc", bits = 1, label = "Dc" },
  { name = "ie", bits = 1, label = "Ie" },
  { name = "rel", bits = 1, label = "Rel", names = { [0] = "absolute", [1] = "relative" } },
  { name = "hd", bits = 1, label = "Hd" },
  { name = "eom", bits = 1, label = "Eom" },
  { name = "som", bits = 1, label = "Som" },
  { name = "reserved4", bits = 2, label = "Reserved4", fixed = 0 },
  { name = "request_length", bits = 14, label = "Request length" },
  { name = "ri_generation", bits = 8, label = "Ri generation" },
  { name = "job_id", bits = 24, label = "Job id" },
  { name = "reserved2", bits = 4, label = "Reserved2", fixed = 0 },
  { name = "pid_on_fep", bits = 12, label = "Pid on fep" },
  { name = "reserved3", bits = 4, label = "Reserved3", fixed = 0 },
  { name = "resource_index", bits = 12, label = "Resource index" },
  { name = "buffer_offset", bits = 64, label = "Buffer offset" },
  { name = "initiator", bits = 32, label = "Initiator", hex = true },
  { name = "match_bits", bits = 64, label = "Match bits", hex = true },
}

local UET_RENDEZVOUS = {
  bytes = 24,
  { name = "eager_length", bits = 32, label = "Eager length" },
  { name = "read_ri_generation", bits = 8, label = "Read ri generation" },
  { name = "read_pid_on_fep", bits = 12, label = "Read pid on fep" },
  { name = "read_resource_index", bits = 12, label = "Read resource index" },
  { name = "read_offset", bits = 64, label = "Read offset" },
  { name = "read_mem_key", bits = 64, label = "Read mem key", hex = true },
}

local UET_ATOMIC = {
  bytes = 4,
  { name = "atomic_code", bits = 8, label = "Atomic code", hex = true, names = { [0] = "min", [1] = "max", [2] = "sum", [3] = "diff", [4] = "prod", [5] = "lor", [6] = "land", [7] = "bor", [8] = "band", [9] = "lxor", [10] = "bxor", [11] = "read", [12] = "write", [13] = "cswap", [14] = "cswap_ne", [15] = "cswap_le", [16] = "cswap_lt", [17] = "cswap_ge", [18] = "cswap_gt", [19] = "mswap", [20] = "inval" } },
  { name = "atomic_datatype", bits = 8, label = "Atomic datatype", hex = true, names = { [0] = "int8", [1] = "uint8", [2] = "int16", [3] = "uint16", [4] = "int32", [5] = "uint32", [6] = "int64", [7] = "uint64", [8] = "int128", [9] = "uint128", [10] = "float", [11] = "double", [12] = "float_complex", [13] = "double_complex", [14] = "long_double", [15] = "long_double_complex", [16] = "bf16", [17] = "fp16" } },
  { name = "semantic_control", bits = 8, label = "Semantic control", hex = true },
  { name = "reserved", bits = 8, label = "Reserved", fixed = 0 },
}

local UET_COMPARESWAP = {
  bytes = 32,
  { name = "compare_high", bits = 64, label = "Compare high", hex = true },
  { name = "compare_low", bits = 64, label = "Compare low", hex = true },
  { name = "swap_high", bits = 64, label = "Swap high", hex = true },
  { name = "swap_low", bits = 64, label = "Swap low", hex = true },
}

local UET_RESPONSE = {
  bytes = 12,
  { name = "list", bits = 2, label = "List", names = { [0] = "expected", [1] = "overflow" } },
  { name = "opcode", bits = 6, label = "Opcode", names = { [0] = "default_response", [1] = "response", [2] = "response_with_data", [3] = "no_response" } },
  { name = "version", bits = 2, label = "Version", fixed = 0 },
  { name = "return_code", bits = 6, label = "Return code", names = { [0] = "null", [1] = "ok", [2] = "bad_generation", [3] = "disabled", [4] = "disabled_gen", [5] = "no_match", [6] = "unsupported_op", [7] = "unsupported_size", [8] = "at_invalid", [9] = "at_perm", [10] = "at_ats_error", [11] = "at_no_trans", [12] = "at_out_of_range", [13] = "host_poisoned", [14] = "host_unsuccess_cmpl", [15] = "amo_unsupported_op", [16] = "amo_unsupported_dt", [17] = "amo_unsupported_size", [18] = "amo_unaligned", [19] = "amo_fp_nan", [20] = "amo_fp_underflow", [21] = "amo_fp_overflow", [22] = "amo_fp_inexact", [23] = "perm_violation", [24] = "op_violation", [25] = "bad_index", [26] = "bad_pid", [27] = "bad_job_id", [28] = "bad_mkey", [29] = "bad_addr", [30] = "cancelled", [31] = "undeliverable", [32] = "uncor", [33] = "uncor_trnsnt", [34] = "too_long", [35] = "initiator_error", [36] = "dropped" } },
  { name = "message_id", bits = 16, label = "Message id" },
  { name = "ri_generation", bits = 8, label = "Ri generation" },
  { name = "job_id", bits = 24, label = "Job id" },
  { name = "modified_length", bits = 32, label = "Modified length" },
}

local UET_RESPONSEDATA = {
  bytes = 20,
  { name = "list", bits = 2, label = "List", names = { [0] = "expected", [1] = "overflow" } },
  { name = "opcode", bits = 6, label = "Opcode", names = { [0] = "default_response", [1] = "response", [2] = "response_with_data", [3] = "no_response" } },
  { name = "version", bits = 2, label = "Version", fixed = 0 },
  { name = "return_code", bits = 6, label = "Return code", names = { [0] = "null", [1] = "ok", [2] = "bad_generation", [3] = "disabled", [4] = "disabled_gen", [5] = "no_match", [6] = "unsupported_op", [7] = "unsupported_size", [8] = "at_invalid", [9] = "at_perm", [10] = "at_ats_error", [11] = "at_no_trans", [12] = "at_out_of_range", [13] = "host_poisoned", [14] = "host_unsuccess_cmpl", [15] = "amo_unsupported_op", [16] = "amo_unsupported_dt", [17] = "amo_unsupported_size", [18] = "amo_unaligned", [19] = "amo_fp_nan", [20] = "amo_fp_underflow", [21] = "amo_fp_overflow", [22] = "amo_fp_inexact", [23] = "perm_violation", [24] = "op_violation", [25] = "bad_index", [26] = "bad_pid", [27] = "bad_job_id", [28] = "bad_mkey", [29] = "bad_addr", [30] = "cancelled", [31] = "undeliverable", [32] = "uncor", [33] = "uncor_trnsnt", [34] = "too_long", [35] = "initiator_error", [36] = "dropped" } },
  { name = "response_message_id", bits = 16, label = "Response message id" },
  { name = "reserved1", bits = 8, label = "Reserved1", fixed = 0 },
  { name = "job_id", bits = 24, label = "Job id" },
  { name = "read_request_message_id", bits = 16, label = "Read request message id" },
  { name = "reserved2", bits = 2, label = "Reserved2", fixed = 0 },
  { name = "payload_length", bits = 14, label = "Payload length" },
  { name = "modified_length", bits = 32, label = "Modified length" },
  { name = "message_offset", bits = 32, label = "Message offset" },
}

local UET_SMALLRESPONSEDATA = {
  bytes = 12,
  { name = "list", bits = 2, label = "List", names = { [0] = "expected", [1] = "overflow" } },
  { name = "opcode", bits = 6, label = "Opcode", names = { [0] = "default_response", [1] = "response", [2] = "response_with_data", [3] = "no_response" } },
  { name = "version", bits = 2, label = "Version", fixed = 0 },
  { name = "return_code", bits = 6, label = "Return code", names = { [0] = "null", [1] = "ok", [2] = "bad_generation", [3] = "disabled", [4] = "disabled_gen", [5] = "no_match", [6] = "unsupported_op", [7] = "unsupported_size", [8] = "at_invalid", [9] = "at_perm", [10] = "at_ats_error", [11] = "at_no_trans", [12] = "at_out_of_range", [13] = "host_poisoned", [14] = "host_unsuccess_cmpl", [15] = "amo_unsupported_op", [16] = "amo_unsupported_dt", [17] = "amo_unsupported_size", [18] = "amo_unaligned", [19] = "amo_fp_nan", [20] = "amo_fp_underflow", [21] = "amo_fp_overflow", [22] = "amo_fp_inexact", [23] = "perm_violation", [24] = "op_violation", [25] = "bad_index", [26] = "bad_pid", [27] = "bad_job_id", [28] = "bad_mkey", [29] = "bad_addr", [30] = "cancelled", [31] = "undeliverable", [32] = "uncor", [33] = "uncor_trnsnt", [34] = "too_long", [35] = "initiator_error", [36] = "dropped" } },
  { name = "reserved1", bits = 2, label = "Reserved1", fixed = 0 },
  { name = "payload_length", bits = 14, label = "Payload length" },
  { name = "reserved2", bits = 8, label = "Reserved2", fixed = 0 },
  { name = "job_id", bits = 24, label = "Job id" },
  { name = "original_request_psn", bits = 32, label = "Original request psn" },
}

local MRC_OPCODES = {
  [0xC6] = { name = "MRC_RDMA_WRITE_FIRST", headers = { MRC_METH, MRC_TSETH, MRC_RETH } },
  [0xC7] = { name = "MRC_RDMA_WRITE_MIDDLE", headers = { MRC_METH, MRC_TSETH, MRC_RETH } },
  [0xC8] = { name = "MRC_RDMA_WRITE_LAST", headers = { MRC_METH, MRC_TSETH, MRC_RETH } },
  [0xC9] = { name = "MRC_RDMA_WRITE_LAST_WITH_IMMEDIATE", headers = { MRC_METH, MRC_TSETH, MRC_RETH, MRC_IMMDT } },
  [0xCA] = { name = "MRC_RDMA_WRITE_ONLY", headers = { MRC_METH, MRC_TSETH, MRC_RETH } },
  [0xCB] = { name = "MRC_RDMA_WRITE_ONLY_WITH_IMMEDIATE", headers = { MRC_METH, MRC_TSETH, MRC_RETH, MRC_IMMDT } },
  [0xD1] = { name = "MRC_ACKNOWLEDGE", headers = { MRC_AETH } },
  [0xD8] = { name = "MRC_ENDPOINT_REQUEST", headers = { MRC_ERTH } },
  [0xD9] = { name = "MRC_ENDPOINT_RESPONSE", headers = { MRC_EETH } },
  [0xDC] = { name = "MRC_RELIABILITY_SACK", headers = { MRC_SETH, MRC_CCSTATE } },
  [0xDD] = { name = "MRC_RELIABILITY_NACK", headers = { MRC_NETH } },
  [0xDE] = { name = "MRC_RELIABILITY_PROBE", headers = { MRC_PETH } },
}

local UET_LAYOUTS = {
  ["request"] = UET_REQUEST,
  ["synrequest"] = UET_SYNREQUEST,
  ["requestccstate"] = UET_REQUESTCCSTATE,
  ["ack"] = UET_ACK,
  ["ackcc"] = UET_ACKCC,
  ["nsccstate"] = UET_NSCCSTATE,
  ["creditstate"] = UET_CREDITSTATE,
  ["otherccstate"] = UET_OTHERCCSTATE,
  ["ccxstate"] = UET_CCXSTATE,
  ["nack"] = UET_NACK,
  ["nackccx"] = UET_NACKCCX,
  ["control"] = UET_CONTROL,
  ["syncontrol"] = UET_SYNCONTROL,
  ["rudi"] = UET_RUDI,
  ["uud"] = UET_UUD,
  ["standard"] = UET_STANDARD,
  ["continuation"] = UET_CONTINUATION,
  ["deferrable"] = UET_DEFERRABLE,
  ["deferrablecontinuation"] = UET_DEFERRABLECONTINUATION,
  ["restart"] = UET_RESTART,
  ["small"] = UET_SMALL,
  ["medium"] = UET_MEDIUM,
  ["rendezvous"] = UET_RENDEZVOUS,
  ["atomic"] = UET_ATOMIC,
  ["compareswap"] = UET_COMPARESWAP,
  ["response"] = UET_RESPONSE,
  ["responsedata"] = UET_RESPONSEDATA,
  ["smallresponsedata"] = UET_SMALLRESPONSEDATA,
}

local UET_TYPES = {
  [2] = { name = "RUD_REQUEST", headers = { UET_REQUEST }, syn_headers = { UET_SYNREQUEST }, has_semantic = true },
  [3] = { name = "ROD_REQUEST", headers = { UET_REQUEST }, syn_headers = { UET_SYNREQUEST }, has_semantic = true },
  [4] = { name = "RUDI_REQUEST", headers = { UET_RUDI }, syn_headers = {  }, has_semantic = true },
  [5] = { name = "RUDI_RESPONSE", headers = { UET_RUDI }, syn_headers = {  }, has_semantic = true },
  [6] = { name = "UUD_REQUEST", headers = { UET_UUD }, syn_headers = {  }, has_semantic = true },
  [7] = { name = "ACK", headers = { UET_ACK }, syn_headers = {  }, has_semantic = true },
  [8] = { name = "ACK_CC", headers = { UET_ACK, UET_ACKCC, UET_OTHERCCSTATE }, syn_headers = {  }, has_semantic = true },
  [9] = { name = "ACK_CCX", headers = { UET_ACK, UET_ACKCC, UET_CCXSTATE }, syn_headers = {  }, has_semantic = true },
  [10] = { name = "NACK", headers = { UET_NACK }, syn_headers = {  }, has_semantic = false },
  [11] = { name = "CONTROL", headers = { UET_CONTROL }, syn_headers = { UET_SYNCONTROL }, has_semantic = false },
  [12] = { name = "NACK_CCX", headers = { UET_NACK, UET_NACKCCX }, syn_headers = {  }, has_semantic = false },
  [13] = { name = "RUD_CC_REQUEST", headers = { UET_REQUEST, UET_REQUESTCCSTATE }, syn_headers = { UET_SYNREQUEST, UET_REQUESTCCSTATE }, has_semantic = true },
  [14] = { name = "ROD_CC_REQUEST", headers = { UET_REQUEST, UET_REQUESTCCSTATE }, syn_headers = { UET_SYNREQUEST, UET_REQUESTCCSTATE }, has_semantic = true },
}

local UET_CC_STATES = {
  [0] = UET_NSCCSTATE,
  [1] = UET_CREDITSTATE,
}

local UET_SEMANTIC = {
  [1] = UET_SMALL,
  [2] = UET_MEDIUM,
  [4] = UET_RESPONSE,
  [5] = UET_RESPONSEDATA,
  [6] = UET_SMALLRESPONSEDATA,
}

local UET_STANDARD_REQUESTS = {
  [0] = { [0] = UET_CONTINUATION, [1] = UET_STANDARD },
  [1] = { [0] = UET_CONTINUATION, [1] = UET_STANDARD },
  [2] = { [0] = UET_CONTINUATION, [1] = UET_STANDARD },
  [3] = { [0] = UET_CONTINUATION, [1] = UET_STANDARD },
  [4] = { [0] = UET_CONTINUATION, [1] = UET_STANDARD },
  [5] = { [0] = UET_CONTINUATION, [1] = UET_STANDARD },
  [6] = { [0] = UET_CONTINUATION, [1] = UET_STANDARD },
  [7] = { [0] = UET_CONTINUATION, [1] = UET_STANDARD },
  [8] = { [0] = UET_DEFERRABLECONTINUATION, [1] = UET_DEFERRABLE },
  [9] = { [0] = UET_CONTINUATION, [1] = UET_STANDARD },
  [10] = { [0] = UET_CONTINUATION, [1] = UET_STANDARD },
  [11] = { [0] = UET_DEFERRABLECONTINUATION, [1] = UET_DEFERRABLE },
  [12] = { [0] = UET_RESTART, [1] = UET_RESTART },
  [13] = { [0] = UET_CONTINUATION, [1] = UET_STANDARD },
  [14] = { [0] = UET_CONTINUATION, [1] = UET_STANDARD },
  [15] = { [0] = UET_CONTINUATION, [1] = UET_STANDARD },
}

local UET_EXTENSIONS = {
  [UET_STANDARD] = { [3] = UET_ATOMIC, [4] = UET_ATOMIC, [6] = UET_RENDEZVOUS, [10] = UET_RENDEZVOUS, [13] = UET_ATOMIC, [14] = UET_ATOMIC },
  [UET_CONTINUATION] = { [3] = UET_ATOMIC, [4] = UET_ATOMIC, [6] = UET_RENDEZVOUS, [10] = UET_RENDEZVOUS, [13] = UET_ATOMIC, [14] = UET_ATOMIC },
  [UET_SMALL] = { [3] = UET_ATOMIC, [4] = UET_ATOMIC, [13] = UET_ATOMIC, [14] = UET_ATOMIC },
  [UET_MEDIUM] = { [3] = UET_ATOMIC, [4] = UET_ATOMIC, [13] = UET_ATOMIC, [14] = UET_ATOMIC },
}

local UET_COMPARE_SWAP = {
  [13] = true,
  [14] = true,
  [15] = true,
  [16] = true,
  [17] = true,
  [18] = true,
}
-- end

---------------------------------------------------------------------------------------------------------------
-- Fields of a layout. Bits are counted from the first byte of the header, the most significant one first.

local INTEGERS = { ProtoField.uint8, ProtoField.uint16, ProtoField.uint24, ProtoField.uint32 }

-- Bytes that a field lies in, and where in them it ends, counted from the last bit.
local function place_of(field)
  local first = math.floor(field.at / 8)
  local behind = math.ceil((field.at + field.bits) / 8)
  return first, behind - first, 8 * behind - field.at - field.bits
end

local function declared(field, abbreviation)
  local _, bytes, shift = place_of(field)
  local base_of = field.hex and base.HEX or base.DEC
  if field.bits > 32 then
    field.is_given = field.bits < 64
    return ProtoField.uint64(abbreviation, field.label, base_of, field.names)
  end
  if field.signed then return ProtoField.int16(abbreviation, field.label) end
  if field.bits == 1 then return ProtoField.bool(abbreviation, field.label, 8, nil, bit.lshift(1, shift)) end
  -- Wireshark shows the bits of a field within one or two bytes. In more, and where units are turned into bytes, show()
  -- gives the number.
  local is_part = field.bits < 8 * bytes
  field.is_given = field.unit ~= nil or (is_part and bytes > 2)
  local integer = field.is_given and ProtoField.uint32 or INTEGERS[bytes]
  local mask = is_part and not field.is_given and bit.lshift(2 ^ field.bits - 1, shift) or nil
  return integer(abbreviation, field.label, base_of, field.names, mask)
end

-- Makes the fields of a layout fields of a protocol, named `prefix.name`; fixed ones but for a version are not shown.
local function declare(proto, prefix, layout)
  local at = 0
  for _, field in ipairs(layout) do
    field.at = at
    at = at + field.bits
    if field.fixed == nil or field.fixed ~= 0 then
      field.proto_field = declared(field, prefix .. "." .. field.name)
      proto.fields[prefix .. "." .. field.name] = field.proto_field
    end
  end
end

local function value_of(field, buffer)
  local first, bytes = place_of(field)
  if field.bits == 64 then return buffer(first, bytes):uint64() end
  return buffer(first, bytes):bitfield(field.at - 8 * first, field.bits) * (field.unit or 1)
end

-- Adds a header's fields to a tree; returns their values and items by name. The buffer has the whole header.
local function show(tree, layout, buffer)
  local values, items = {}, {}
  for _, field in ipairs(layout) do
    local first, bytes = place_of(field)
    values[field.name] = value_of(field, buffer)
    if field.proto_field and field.is_given then
      items[field.name] = tree:add(field.proto_field, buffer(first, bytes), values[field.name])
    elseif field.proto_field then
      items[field.name] = tree:add(field.proto_field, buffer(first, bytes))
    end
  end
  return values, items
end

local function field_of(layout, name)
  for _, field in ipairs(layout) do
    if field.name == name then return field end
  end
end

local function has_version(layout, buffer)
  local version = field_of(layout, "version")
  return buffer:len() >= layout.bytes and value_of(version, buffer) == version.fixed
end

local function malformed(proto, name, text)
  proto.experts.malformed = ProtoExpert.new(name .. ".malformed", text, expert.group.MALFORMED, expert.severity.ERROR)
end

---------------------------------------------------------------------------------------------------------------
-- INT shim

local int = Proto("weft_int", "Weft INT shim (HPCC)")

-- A fabric gives its own codes to rates that have no standard one; `weft topology show` lists them.
int.prefs.own_rates = Pref.string("Rates of the fabric's own codes", "",
  "Rates in Gb/s of codes that have no standard one, such as 11=133.33,12=66.67")

local own_rates = {}

function int.prefs_changed()
  own_rates = {}
  for code, gbps in string.gmatch(int.prefs.own_rates, "(%d+)%s*=%s*([%d.]+)") do
    own_rates[tonumber(code)] = gbps .. " Gb/s"
  end
end

local RATES = field_of(INT_HOP, "rate_code").names
field_of(INT_HOP, "rate_code").names = nil -- show_hop() has the fabric's own, too

local function rate_of(code)
  local standard = RATES[code] and string.gsub(RATES[code], "^(%d+)G$", "%1 Gb/s")
  return own_rates[code] or standard or string.format("the fabric's own code %d", code)
end

declare(int, "weft_int", INT_SHIM)
declare(int, "weft_int.hop", INT_HOP)
malformed(int, "weft_int", "Malformed INT shim")

local function show_hop(buffer, tree, number)
  local hop = tree:add(int, buffer, string.format("Hop %d", number))
  local values, items = show(hop, INT_HOP, buffer)
  items.rate_code:append_text(string.format(" (%s)", rate_of(values.rate_code)))
  hop:append_text(string.format(": queue %d B, %s", values.queue_bytes, rate_of(values.rate_code)))
end

function int.dissector(buffer, packet, root)
  if buffer:len() < INT_SHIM.bytes then return 0 end
  local hop_slots = value_of(field_of(INT_SHIM, "hop_slots"), buffer)
  local length = INT_SHIM.bytes + hop_slots * INT_HOP.bytes
  local tree = root:add(int, buffer(0, math.min(length, buffer:len())))
  local values = show(tree, INT_SHIM, buffer)
  tree:append_text(string.format(", %d hops", values.hop_count))
  if buffer:len() < length or values.hop_count > hop_slots then
    tree:add_proto_expert_info(int.experts.malformed)
    return INT_SHIM.bytes
  end
  for number = 1, values.hop_count do
    show_hop(buffer(INT_SHIM.bytes + (number - 1) * INT_HOP.bytes, INT_HOP.bytes), tree, number)
  end
  DissectorTable.get("ethertype"):try(values.next_ethertype, buffer(length):tvb(), packet, root)
  return buffer:len()
end

DissectorTable.get("ethertype"):add(INT_ETHERTYPE, int)

---------------------------------------------------------------------------------------------------------------
-- Updates of credits

local credits = Proto("weft_credits", "Weft credit update")

declare(credits, "weft_credits", CREDIT_UPDATE)
declare(credits, "weft_credits.lane", CREDIT_LANE)
malformed(credits, "weft_credits", "Malformed credit update")

function credits.dissector(buffer, packet, root)
  local length = CREDIT_UPDATE.bytes + CLASSES * CREDIT_LANE.bytes
  local tree = root:add(credits, buffer(0, math.min(length, buffer:len())))
  if buffer:len() < length then
    tree:add_proto_expert_info(credits.experts.malformed)
    return buffer:len()
  end
  local values = show(tree, CREDIT_UPDATE, buffer)
  for lane = 0, CLASSES - 1 do
    if bit.band(values.enabled_lanes, bit.lshift(1, lane)) ~= 0 then
      local range = buffer(CREDIT_UPDATE.bytes + lane * CREDIT_LANE.bytes, CREDIT_LANE.bytes)
      show(tree:add(credits, range, string.format("Class %d", lane)), CREDIT_LANE, range)
    end
  end
  packet.cols.info:set(values.request == 1 and "Credit update, to be answered" or "Credit update")
  packet.cols.protocol:set("WEFT-CREDITS")
  return buffer:len()
end

---------------------------------------------------------------------------------------------------------------
-- Shim of routes by intermediates

local valiant = Proto("weft_valiant", "Weft shim of a route by an intermediate")

declare(valiant, "weft_valiant", VALIANT_SHIM)
malformed(valiant, "weft_valiant", "Malformed shim")

local destination_address = Field.new("eth.dst")

function valiant.dissector(buffer, packet, root)
  local address = destination_address()
  if buffer:len() == 0 then return 0 end
  if address and tostring(address.range:bytes()) == MAC_CONTROL_ADDRESS then
    return credits.dissector(buffer, packet, root)
  end
  local tree = root:add(valiant, buffer(0, math.min(VALIANT_SHIM.bytes, buffer:len())))
  if not has_version(VALIANT_SHIM, buffer) then
    tree:add_proto_expert_info(valiant.experts.malformed)
    return buffer:len()
  end
  local values = show(tree, VALIANT_SHIM, buffer)
  tree:append_text(string.format(", to %d first", values.intermediate))
  DissectorTable.get("ethertype"):try(values.next_ethertype, buffer(VALIANT_SHIM.bytes):tvb(), packet, root)
  return buffer:len()
end

DissectorTable.get("ethertype"):add(VALIANT_ETHERTYPE, valiant)

---------------------------------------------------------------------------------------------------------------
-- Datagrams of Weft's

local opcode = Field.new("infiniband.bth.opcode")
local destination_qp = Field.new("infiniband.bth.destqp")
local source_qp = Field.new("infiniband.deth.srcqp")

-- Whether the packet is a SEND ONLY datagram between these queue pairs; a nil stands for any.
local function is_datagram(from, ...)
  local operation, source, destination = opcode(), source_qp(), destination_qp()
  if not (operation and source and destination) or operation.value ~= UD_SEND_ONLY then return false end
  if from and source.value ~= from then return false end
  for _, queue_pair in ipairs({ ... }) do
    if destination.value == queue_pair then return true end
  end
  return false
end

local function name_in(layout, name, value)
  return field_of(layout, name).names[value] or string.format("unknown %s", name)
end

local aggregation = Proto("weft_aggregation", "Weft in-network aggregation")

declare(aggregation, "weft_aggregation", AGGREGATION)
aggregation.fields.lane = ProtoField.int32("weft_aggregation.lane", "Lane")

local function is_aggregation(buffer)
  if not is_datagram(nil, CONTRIBUTION_QP, RESULT_QP) or not has_version(AGGREGATION, buffer) then return false end
  return buffer:len() >= AGGREGATION.bytes + LANE_BYTES * value_of(field_of(AGGREGATION, "lane_count"), buffer)
end

function aggregation.dissector(buffer, packet, root)
  local lane_count = value_of(field_of(AGGREGATION, "lane_count"), buffer)
  local length = AGGREGATION.bytes + LANE_BYTES * lane_count
  local tree = root:add(aggregation, buffer(0, length))
  local values = show(tree, AGGREGATION, buffer)
  if lane_count > 0 then
    local lanes = tree:add(aggregation, buffer(AGGREGATION.bytes, LANE_BYTES * lane_count), "Lanes")
    for lane = 0, lane_count - 1 do
      lanes:add(aggregation.fields.lane, buffer(AGGREGATION.bytes + LANE_BYTES * lane, LANE_BYTES))
    end
  end
  packet.cols.info:set(string.format("Aggregation %s: %s, job %d epoch %d slot %d round %d",
    name_in(AGGREGATION, "kind", values.kind), name_in(AGGREGATION, "operation", values.operation),
    values.job_id, values.epoch, values.slot, values.round))
  packet.cols.protocol:set("WEFT-AGG")
  return length
end

aggregation:register_heuristic("infiniband.payload", function(buffer, packet, root)
  if not is_aggregation(buffer) then return false end
  aggregation.dissector(buffer, packet, root)
  return true
end)

local service = Proto("weft_service", "Weft service of a switch")

declare(service, "weft_service", SERVICE)

service:register_heuristic("infiniband.payload", function(buffer, packet, root)
  if not is_datagram(REQUEST_QP, REQUEST_QP, ANSWER_QP) or not has_version(SERVICE, buffer) then return false end
  local values = show(root:add(service, buffer(0, SERVICE.bytes)), SERVICE, buffer)
  packet.cols.info:set(string.format("Service %s: %s, group %d epoch %d cell %d sequence %d",
    name_in(SERVICE, "kind", values.kind), name_in(SERVICE, "operation", values.operation),
    values.group_id, values.epoch, values.cell, values.sequence))
  packet.cols.protocol:set("WEFT-SERVICE")
  return true
end)

local notification = Proto("weft_notification", "Weft switch notification")

declare(notification, "weft_notification", NOTIFICATION)

function notification.dissector(buffer, packet, root)
  if not has_version(NOTIFICATION, buffer) then return 0 end
  local values = show(root:add(notification, buffer(0, NOTIFICATION.bytes)), NOTIFICATION, buffer)
  packet.cols.info:set(string.format("Queue of %d bytes, queue pair 0x%06x PSN %d", values.queue_bytes,
    values.queue_pair, values.psn))
  packet.cols.protocol:set("WEFT-NOTIFY")
  return NOTIFICATION.bytes
end

DissectorTable.get("udp.port"):add(NOTIFICATION_UDP_PORT, notification)

local parameter = Proto("weft_parameter", "Weft parameter store")

declare(parameter, "weft_parameter", PARAMETER)
parameter.fields.data = ProtoField.bytes("weft_parameter.data", "Parameters")

local function is_parameter(buffer)
  return has_version(PARAMETER, buffer) and (is_datagram(PARAMETER_STORE_QP, PARAMETER_CLIENT_QP)
    or is_datagram(PARAMETER_CLIENT_QP, PARAMETER_STORE_QP))
end

parameter:register_heuristic("infiniband.payload", function(buffer, packet, root)
  if not is_parameter(buffer) then return false end
  local tree = root:add(parameter, buffer(0, buffer:len()))
  local values = show(tree, PARAMETER, buffer)
  if buffer:len() > PARAMETER.bytes then tree:add(parameter.fields.data, buffer(PARAMETER.bytes)) end
  packet.cols.info:set(string.format("Parameter %s: block %d, group %d epoch %d client %d sequence %d",
    name_in(PARAMETER, "kind", values.kind), values.block, values.group_id, values.epoch, values.client,
    values.sequence))
  packet.cols.protocol:set("WEFT-PARAMETER")
  return true
end)

---------------------------------------------------------------------------------------------------------------
-- MRC: Wireshark shows the BTH of its packets as one with an unknown opcode and nothing behind it.

local mrc = Proto("weft_mrc", "Multipath Reliable Connection")

local MRC_PREFIXES = {
  [MRC_BTH] = "bth", [MRC_METH] = "meth", [MRC_TSETH] = "tseth", [MRC_RETH] = "reth", [MRC_IMMDT] = "immdt",
  [MRC_AETH] = "aeth", [MRC_SETH] = "seth", [MRC_CCSTATE] = "cc_state", [MRC_NETH] = "neth", [MRC_PETH] = "peth",
  [MRC_ERTH] = "erth", [MRC_EETH] = "eeth",
}
for layout, prefix in pairs(MRC_PREFIXES) do declare(mrc, "weft_mrc." .. prefix, layout) end
malformed(mrc, "weft_mrc", "The frame ends within MRC's headers")

function mrc.dissector(buffer, packet, root)
  local found = opcode()
  local kind = found and MRC_OPCODES[found.value]
  if not kind then return 0 end
  local at = found.offset
  local tree = root:add(mrc, buffer(at))
  tree:append_text(", " .. kind.name)
  local bth = show(tree:add(mrc, buffer(at, MRC_BTH.bytes), "BTH"), MRC_BTH, buffer(at, MRC_BTH.bytes))
  at = at + MRC_BTH.bytes
  for _, layout in ipairs(kind.headers) do
    if layout ~= MRC_TSETH or bth.ts == 1 then
      if buffer:len() < at + layout.bytes then
        tree:add_proto_expert_info(mrc.experts.malformed)
        return buffer:len()
      end
      local range = buffer(at, layout.bytes)
      show(tree:add(mrc, range, string.upper(MRC_PREFIXES[layout])), layout, range)
      at = at + layout.bytes
    end
  end
  packet.cols.info:set(string.format("%s QP=0x%06x PSN=%d", kind.name, bth.dqpn, bth.psn))
  packet.cols.protocol:set("MRC")
  return buffer:len()
end

register_postdissector(mrc)

---------------------------------------------------------------------------------------------------------------
-- UET

local uet = Proto("weft_uet", "Ultra Ethernet Transport")

local UET_PREFIXES = {}
for prefix, layout in pairs(UET_LAYOUTS) do
  UET_PREFIXES[layout] = prefix
  declare(uet, "weft_uet." .. prefix, layout)
end
malformed(uet, "weft_uet", "The frame ends within UET's headers")

-- Shows one header after another. A header that is not whole ends it, and is_cut is set.
local function uet_headers(buffer, tree)
  local headers = { at = 0, is_cut = false }
  function headers.show(layout)
    if headers.is_cut or buffer:len() < headers.at + layout.bytes then
      headers.is_cut = true
      return {}
    end
    local range = buffer(headers.at, layout.bytes)
    headers.at = headers.at + layout.bytes
    return show(tree:add(uet, range, UET_PREFIXES[layout]), layout, range)
  end
  return headers
end

local function uet_semantic_layout(buffer, at, next_header)
  if next_header ~= 3 then return UET_SEMANTIC[next_header] end
  if buffer:len() < at + 2 then return UET_STANDARD end
  local requests = UET_STANDARD_REQUESTS[bit.band(buffer(at, 1):uint(), 0x3F)] or UET_STANDARD_REQUESTS[0]
  return requests[bit.band(buffer(at + 1, 1):uint(), 1)]
end

local function show_uet_semantic(buffer, headers, next_header)
  local layout = uet_semantic_layout(buffer, headers.at, next_header)
  if not layout then return end
  local values = headers.show(layout)
  local extension = UET_EXTENSIONS[layout] and UET_EXTENSIONS[layout][values.opcode]
  if not extension then return end
  local extended = headers.show(extension)
  if extension == UET_ATOMIC and UET_COMPARE_SWAP[extended.atomic_code] then headers.show(UET_COMPARESWAP) end
end

function uet.dissector(buffer, packet, root)
  if buffer:len() < 2 then return 0 end
  local kind = UET_TYPES[bit.rshift(buffer(0, 1):uint(), 3)]
  if not kind then return 0 end
  local tree = root:add(uet, buffer(0))
  tree:append_text(", " .. kind.name)
  local headers = uet_headers(buffer, tree)
  local has_syn = #kind.syn_headers > 0 and bit.band(buffer(1, 1):uint(), 4) ~= 0
  local first, cc_type
  for index, layout in ipairs(has_syn and kind.syn_headers or kind.headers) do
    if layout == UET_OTHERCCSTATE then layout = UET_CC_STATES[cc_type] or layout end
    local values = headers.show(layout)
    if index == 1 then first = values end
    cc_type = values.cc_type
  end
  if kind.has_semantic and first.next_header then show_uet_semantic(buffer, headers, first.next_header) end
  if headers.is_cut then tree:add_proto_expert_info(uet.experts.malformed) end
  packet.cols.info:set(kind.name)
  packet.cols.protocol:set("UET")
  return buffer:len()
end

-- Newer versions of Wireshark have a dissector of UET, which stays in charge of the port.
local is_asked, of_wireshark = pcall(Dissector.get, "uet")
if not (is_asked and of_wireshark) then DissectorTable.get("udp.port"):add(UET_UDP_PORT, uet) end
