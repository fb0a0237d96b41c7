-- Wireshark dissector of Weft's own formats: the INT shim (EtherType 0x88B5), the shim of routes by intermediates
-- (EtherType 0x88B6) and the aggregation header inside RoCEv2 UD SEND-only packets. Formats: docs/spec/frames.md.
--
--   wireshark -X lua_script:docs/wireshark/weft.lua capture.pcap
--   tshark -X lua_script:docs/wireshark/weft.lua -o "weft_int.own_rates:11=133.33" -r capture.pcap
--
-- or copy it into the folder that Help > About > Folders names "Personal Lua Plugins".

local INT_ETHERTYPE = 0x88B5
local VALIANT_ETHERTYPE = 0x88B6
local VALIANT_BYTES = 6
local VALIANT_VERSION = 1
local INT_FIXED_BYTES = 6
local HOP_BYTES = 8
local AGGREGATION_BYTES = 20
local AGGREGATION_VERSION = 2

local RATES = {
  [0] = "unknown", [1] = "1 Gb/s", [2] = "10 Gb/s", [3] = "25 Gb/s", [4] = "40 Gb/s", [5] = "50 Gb/s",
  [6] = "100 Gb/s", [7] = "200 Gb/s", [8] = "400 Gb/s", [9] = "800 Gb/s", [10] = "1600 Gb/s",
}

---------------------------------------------------------------------------------------------------------------
-- INT shim

local int = Proto("weft_int", "Weft INT shim (HPCC)")

-- A fabric gives its own codes to rates that have no standard one; `weft topology show` lists them.
int.prefs.own_rates = Pref.string("Rates of the fabric's own codes", "",
  "What rate codes stand for beside the standard ones, in Gb/s, such as 11=133.33,12=66.67")

local own_rates = {}

function int.prefs_changed()
  own_rates = {}
  for code, gbps in string.gmatch(int.prefs.own_rates, "(%d+)%s*=%s*([%d.]+)") do
    own_rates[tonumber(code)] = gbps .. " Gb/s"
  end
end

local function rate_of(code)
  return own_rates[code] or RATES[code] or string.format("the fabric's own code %d", code)
end

int.fields.version = ProtoField.uint8("weft_int.version", "Version", base.DEC, nil, 0xF0)
int.fields.echo = ProtoField.bool("weft_int.echo", "Echo of the receiver", 8, nil, 0x08)
int.fields.overflow = ProtoField.bool("weft_int.overflow", "A hop found no room", 8, nil, 0x04)
int.fields.hop_slots = ProtoField.uint8("weft_int.hop_slots", "Hop slots")
int.fields.next_ethertype = ProtoField.uint16("weft_int.next_ethertype", "Next EtherType", base.HEX)
int.fields.hop_count = ProtoField.uint16("weft_int.hop_count", "Hops stamped", base.DEC, nil, 0xF000)
int.fields.path_id = ProtoField.uint16("weft_int.path_id", "Path id", base.HEX, nil, 0x0FFF)
int.fields.rate = ProtoField.uint8("weft_int.hop.rate_code", "Rate code", base.DEC, nil, 0xF0)
int.fields.timestamp = ProtoField.uint32("weft_int.hop.timestamp_ns", "Timestamp (ns, modulo 2^24)")
int.fields.tx_bytes = ProtoField.uint32("weft_int.hop.tx_bytes", "Bytes sent by the port (modulo 2^27)")
int.fields.queue_bytes = ProtoField.uint32("weft_int.hop.queue_bytes", "Queue left behind (bytes)")
int.experts.malformed =
  ProtoExpert.new("weft_int.malformed", "Malformed INT shim", expert.group.MALFORMED, expert.severity.ERROR)

local function dissect_hop(buffer, tree, number)
  local hop = tree:add(int, buffer, string.format("Hop %d", number))
  local high, low = buffer(0, 4):uint(), buffer(4, 4):uint()
  -- 4 bits of rate, 24 of time, 20 of bytes sent in units of 128, 16 of queue in cells of 80.
  local tx_bytes = (bit.band(high, 0xF) * 65536 + bit.rshift(low, 16)) * 128
  local queue_bytes = bit.band(low, 0xFFFF) * 80
  hop:add(int.fields.rate, buffer(0, 1)):append_text(string.format(" (%s)", rate_of(bit.rshift(high, 28))))
  hop:add(int.fields.timestamp, buffer(0, 4), bit.band(bit.rshift(high, 4), 0xFFFFFF))
  hop:add(int.fields.tx_bytes, buffer(3, 3), tx_bytes)
  hop:add(int.fields.queue_bytes, buffer(6, 2), queue_bytes)
  hop:append_text(string.format(": queue %d B, %s", queue_bytes, rate_of(bit.rshift(high, 28))))
end

function int.dissector(buffer, packet, root)
  if buffer:len() < INT_FIXED_BYTES then return 0 end
  local hop_slots = buffer(1, 1):uint()
  local length = INT_FIXED_BYTES + hop_slots * HOP_BYTES
  local hop_count = bit.rshift(buffer(4, 2):uint(), 12)
  local tree = root:add(int, buffer(0, math.min(length, buffer:len())))
  tree:add(int.fields.version, buffer(0, 1))
  tree:add(int.fields.echo, buffer(0, 1))
  tree:add(int.fields.overflow, buffer(0, 1))
  tree:add(int.fields.hop_slots, buffer(1, 1))
  tree:add(int.fields.next_ethertype, buffer(2, 2))
  tree:add(int.fields.hop_count, buffer(4, 2))
  tree:add(int.fields.path_id, buffer(4, 2))
  tree:append_text(string.format(", %d hops", hop_count))
  if buffer:len() < length or hop_count > hop_slots then
    tree:add_proto_expert_info(int.experts.malformed)
    return INT_FIXED_BYTES
  end
  for number = 1, hop_count do
    dissect_hop(buffer(INT_FIXED_BYTES + (number - 1) * HOP_BYTES, HOP_BYTES), tree, number)
  end
  local next_ethertype = buffer(2, 2):uint()
  DissectorTable.get("ethertype"):try(next_ethertype, buffer(length):tvb(), packet, root)
  return buffer:len()
end

DissectorTable.get("ethertype"):add(INT_ETHERTYPE, int)

---------------------------------------------------------------------------------------------------------------
-- Shim of routes by intermediates. Updates of credits have its EtherType, too, and an address of their own.

local valiant = Proto("weft_valiant", "Weft shim of a route by an intermediate")

valiant.fields.version = ProtoField.uint8("weft_valiant.version", "Version", base.DEC, nil, 0xF0)
valiant.fields.intermediate = ProtoField.uint16("weft_valiant.intermediate", "Intermediate")
valiant.fields.next_ethertype = ProtoField.uint16("weft_valiant.next_ethertype", "Next EtherType", base.HEX)
valiant.experts.malformed =
  ProtoExpert.new("weft_valiant.malformed", "Malformed shim", expert.group.MALFORMED, expert.severity.ERROR)

local destination_address = Field.new("eth.dst")

function valiant.dissector(buffer, packet, root)
  local address = destination_address()
  if buffer:len() == 0 or (address and tostring(address.range:bytes()) == "0180C2000001") then return 0 end
  local tree = root:add(valiant, buffer(0, math.min(VALIANT_BYTES, buffer:len())))
  tree:add(valiant.fields.version, buffer(0, 1))
  if buffer:len() < VALIANT_BYTES or bit.rshift(buffer(0, 1):uint(), 4) ~= VALIANT_VERSION then
    tree:add_proto_expert_info(valiant.experts.malformed)
    return buffer:len()
  end
  tree:add(valiant.fields.intermediate, buffer(2, 2))
  tree:add(valiant.fields.next_ethertype, buffer(4, 2))
  tree:append_text(string.format(", to %d first", buffer(2, 2):uint()))
  DissectorTable.get("ethertype"):try(buffer(4, 2):uint(), buffer(VALIANT_BYTES):tvb(), packet, root)
  return buffer:len()
end

DissectorTable.get("ethertype"):add(VALIANT_ETHERTYPE, valiant)

---------------------------------------------------------------------------------------------------------------
-- Aggregation header

local KINDS = { [0] = "contribution", [1] = "result" }
local OPERATIONS = { [0] = "sum", [1] = "max", [2] = "min", [3] = "and", [4] = "or", [5] = "xor" }
local DATA_TYPES = { [0] = "int32", [1] = "int16", [2] = "int8" }
local ALL_WORKERS = { [0xFFFF] = "all" }

local aggregation = Proto("weft_aggregation", "Weft in-network aggregation")

aggregation.fields.version = ProtoField.uint8("weft_aggregation.version", "Version", base.DEC, nil, 0xF0)
aggregation.fields.kind = ProtoField.uint8("weft_aggregation.kind", "Kind", base.DEC, KINDS, 0x0F)
aggregation.fields.operation = ProtoField.uint8("weft_aggregation.operation", "Operation", base.DEC, OPERATIONS)
aggregation.fields.job_id = ProtoField.uint16("weft_aggregation.job_id", "Job id")
aggregation.fields.epoch = ProtoField.uint16("weft_aggregation.epoch", "Epoch")
aggregation.fields.slot = ProtoField.uint16("weft_aggregation.slot", "Slot")
aggregation.fields.round = ProtoField.uint32("weft_aggregation.round", "Round")
aggregation.fields.rank = ProtoField.uint16("weft_aggregation.rank", "Rank among the parent's children")
aggregation.fields.lane_count = ProtoField.uint16("weft_aggregation.lane_count", "Lanes")
aggregation.fields.data_type = ProtoField.uint8("weft_aggregation.data_type", "Data type", base.DEC, DATA_TYPES)
aggregation.fields.flags = ProtoField.uint8("weft_aggregation.flags", "Flags", base.HEX)
aggregation.fields.destination = ProtoField.uint16("weft_aggregation.destination", "Destination", base.DEC,
  ALL_WORKERS)
aggregation.fields.lane = ProtoField.int32("weft_aggregation.lane", "Lane")

local destination_qp = Field.new("infiniband.bth.destqp")
local opcode = Field.new("infiniband.bth.opcode")

local UD_SEND_ONLY = 0x64
local CONTRIBUTION_QP, RESULT_QP = 0xA66000, 0xFFFFFF

local function is_aggregation(buffer)
  local operation, queue_pair = opcode(), destination_qp()
  if operation == nil or queue_pair == nil or operation.value ~= UD_SEND_ONLY then return false end
  if queue_pair.value ~= CONTRIBUTION_QP and queue_pair.value ~= RESULT_QP then return false end
  if buffer:len() < AGGREGATION_BYTES or bit.rshift(buffer(0, 1):uint(), 4) ~= AGGREGATION_VERSION then return false end
  return buffer:len() >= AGGREGATION_BYTES + 4 * buffer(14, 2):uint()
end

function aggregation.dissector(buffer, packet, root)
  local lane_count = buffer(14, 2):uint()
  local length = AGGREGATION_BYTES + 4 * lane_count
  local tree = root:add(aggregation, buffer(0, length))
  tree:add(aggregation.fields.version, buffer(0, 1))
  tree:add(aggregation.fields.kind, buffer(0, 1))
  tree:add(aggregation.fields.operation, buffer(1, 1))
  tree:add(aggregation.fields.job_id, buffer(2, 2))
  tree:add(aggregation.fields.epoch, buffer(4, 2))
  tree:add(aggregation.fields.slot, buffer(6, 2))
  tree:add(aggregation.fields.round, buffer(8, 4))
  tree:add(aggregation.fields.rank, buffer(12, 2))
  tree:add(aggregation.fields.lane_count, buffer(14, 2))
  tree:add(aggregation.fields.data_type, buffer(16, 1))
  tree:add(aggregation.fields.flags, buffer(17, 1))
  tree:add(aggregation.fields.destination, buffer(18, 2))
  if lane_count > 0 then
    local lanes = tree:add(aggregation, buffer(AGGREGATION_BYTES, 4 * lane_count), "Lanes")
    for lane = 0, lane_count - 1 do
      lanes:add(aggregation.fields.lane, buffer(AGGREGATION_BYTES + 4 * lane, 4))
    end
  end
  local kind = KINDS[bit.band(buffer(0, 1):uint(), 0x0F)] or "unknown kind"
  local operation = OPERATIONS[buffer(1, 1):uint()] or "unknown operation"
  packet.cols.info:set(string.format("Aggregation %s: %s, job %d epoch %d slot %d round %d", kind, operation,
    buffer(2, 2):uint(), buffer(4, 2):uint(), buffer(6, 2):uint(), buffer(8, 4):uint()))
  packet.cols.protocol:set("WEFT-AGG")
  return length
end

aggregation:register_heuristic("infiniband.payload", function(buffer, packet, root)
  if not is_aggregation(buffer) then return false end
  aggregation.dissector(buffer, packet, root)
  return true
end)
