-- Wireshark dissector of Weft's own formats: the INT shim (EtherType 0x88B5), the shim of routes by intermediates and
-- updates of credits (EtherType 0x88B6), and the headers of aggregation, of services and of parameter stores inside
-- RoCEv2 UD SEND-only packets; and of the headers of MRC (OCP Multipath Reliable Connection), which Wireshark does not
-- know. Formats: docs/spec/frames.md, aggregation.md, services.md and mrc.md.
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
  if field.bits == 64 then return ProtoField.uint64(abbreviation, field.label, base_of, field.names) end
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
