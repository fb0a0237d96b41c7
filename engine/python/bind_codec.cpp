// The codec in Python: pure functions over bytes, for tests, captures and tools.
#include "python/bind_codec.hpp"

#include <arpa/inet.h>
#include <pybind11/stl.h>

#include <array>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "hosts/parameter_format.hpp"
#include "hosts/service_format.hpp"
#include "hosts/switch_notification.hpp"
#include "packets/crc32.hpp"
#include "packets/header_template.hpp"
#include "packets/mrc_codec.hpp"
#include "packets/packet_store.hpp"
#include "packets/uet_codec.hpp"
#include "python/bind_cm.hpp"
#include "python/field_reader.hpp"
#include "python/typed.hpp"

namespace weft {

namespace py = pybind11;
using namespace py::literals;

namespace {

void read_text(FieldReader& fields, const char* name, roce::MacAddress& mac) {
  std::string text = format_mac(mac);
  fields.read(name, text);
  mac = parse_mac(text);
}

void read_text(FieldReader& fields, const char* name, roce::IpAddress& address) {
  std::string text = format_ip(address);
  fields.read(name, text);
  address = parse_ip(text);
}

void read_telemetry(FieldReader& fields, roce::IntStack& stack) {
  read_header(fields, stack);
  std::vector<py::dict> hops;
  fields.read("hops", hops);
  if (hops.size() > roce::kIntHops) throw std::invalid_argument("telemetry.hops: more than 5 hops");
  for (size_t hop = 0; hop < hops.size(); ++hop) {
    FieldReader reader(hops[hop], "telemetry.hops[" + std::to_string(hop) + "]");
    read_header(reader, stack.hops[hop]);
    reader.finish();
  }
}

void read_extensions(FieldReader& fields, roce::RoceHeaders& headers) {
  fields.read_group("deth", [&](FieldReader& group) { read_header(group, headers.deth); });
  fields.read_group("reth", [&](FieldReader& group) { read_header(group, headers.reth); });
  fields.read_group("atomic_eth", [&](FieldReader& group) { read_header(group, headers.atomic_eth); });
  fields.read_group("aeth", [&](FieldReader& group) { read_header(group, headers.aeth); });
  fields.read("atomic_ack_original", headers.atomic_ack_original);
  fields.read("immediate", headers.immediate);
  fields.read("invalidate_rkey", headers.invalidate_rkey);
  fields.read_group("aggregation",
                    [&](FieldReader& group) { read_header(group, headers.aggregation.emplace()); });
}

void read_mrc(FieldReader& fields, mrc::Headers& headers) {
  bool trimmed = false;
  fields.read("trimmed", trimmed);  // as a parsed packet has it
  if (trimmed) throw std::invalid_argument("headers.mrc.trimmed: only switches trim packets (valid: False)");
  fields.read("retransmission", headers.retransmission);
  fields.read_group("meth", [&](FieldReader& group) { read_header(group, headers.meth); });
  fields.read_group("tseth", [&](FieldReader& group) {
    headers.has_timestamp = true;
    read_header(group, headers.tseth);
  });
  fields.read_group("seth", [&](FieldReader& group) { read_header(group, headers.seth); });
  fields.read_group("cc_state", [&](FieldReader& group) { read_header(group, headers.cc_state); });
  fields.read_group("neth", [&](FieldReader& group) { read_header(group, headers.neth); });
  fields.read_group("peth", [&](FieldReader& group) { read_header(group, headers.peth); });
  fields.read_group("erth", [&](FieldReader& group) { read_header(group, headers.erth); });
  fields.read_group("eeth", [&](FieldReader& group) { read_header(group, headers.eeth); });
}

struct AllHeaders {
  roce::RoceHeaders roce;
  std::optional<mrc::Headers> mrc;
};

AllHeaders all_headers_of(const py::dict& dict) {
  AllHeaders all;
  roce::RoceHeaders& headers = all.roce;
  FieldReader fields(dict, "headers");
  read_text(fields, "destination_mac", headers.destination_mac);
  read_text(fields, "source_mac", headers.source_mac);
  fields.read_group("telemetry",
                    [&](FieldReader& group) { read_telemetry(group, headers.telemetry.emplace()); });
  read_text(fields, "source_ip", headers.source_ip);
  read_text(fields, "destination_ip", headers.destination_ip);
  fields.read("dscp", headers.dscp);
  fields.read("ecn", headers.ecn);
  fields.read("hop_limit", headers.hop_limit);
  fields.read("identification", headers.identification);
  fields.read("dont_fragment", headers.dont_fragment);
  fields.read("flow_label", headers.flow_label);
  fields.read("source_udp_port", headers.source_udp_port);
  fields.read_group("bth", [&](FieldReader& group) { read_header(group, headers.bth); });
  read_extensions(fields, headers);
  fields.read_group("mrc", [&](FieldReader& group) {
    uint32_t entropy = mrc::entropy_of(headers);
    group.read("entropy", entropy);
    mrc::set_entropy(headers, entropy);
    read_mrc(group, all.mrc.emplace());
  });
  fields.finish();
  return all;
}

roce::RoceHeaders headers_of(const py::dict& dict) {
  const AllHeaders all = all_headers_of(dict);
  if (all.mrc) throw std::invalid_argument("headers.mrc: a header template builds packets without MRC");
  return all.roce;
}

void add_extensions(py::dict& dict, const roce::ParsedPacket& packet) {
  if (packet.has(roce::kHasDeth)) {
    dict["deth"] = header_dict(packet.deth);
  }
  if (packet.has(roce::kHasReth)) {
    dict["reth"] = header_dict(packet.reth);
  }
  if (packet.has(roce::kHasAtomicEth)) {
    dict["atomic_eth"] = header_dict(packet.atomic_eth);
  }
  if (packet.has(roce::kHasAeth)) {
    dict["aeth"] = header_dict(packet.aeth);
  }
  if (packet.has(roce::kHasAtomicAckEth)) dict["atomic_ack_original"] = packet.atomic_ack_original;
  if (packet.has(roce::kHasImmediate)) dict["immediate"] = packet.immediate;
  if (packet.has(roce::kHasIeth)) dict["invalidate_rkey"] = packet.invalidate_rkey;
  if (packet.aggregation) dict["aggregation"] = header_dict(*packet.aggregation);
}

py::dict mrc_dict(const roce::ParsedPacket& packet) {
  const mrc::Headers headers = mrc::load_headers(packet);
  py::dict dict("retransmission"_a = headers.retransmission, "trimmed"_a = packet.trimmed,
                "entropy"_a = mrc::entropy_of(packet));
  switch (packet.bth.opcode) {
    case mrc::kAcknowledge:
      break;
    case mrc::kSack:
      dict["seth"] = header_dict(headers.seth);
      dict["cc_state"] = header_dict(headers.cc_state);
      break;
    case mrc::kNack:
      dict["neth"] = header_dict(headers.neth);
      break;
    case mrc::kReliabilityProbe:
      dict["peth"] = header_dict(headers.peth);
      break;
    case mrc::kEndpointRequest:
      dict["erth"] = header_dict(headers.erth);
      break;
    case mrc::kEndpointResponse:
      dict["eeth"] = header_dict(headers.eeth);
      break;
    default:
      dict["meth"] = header_dict(headers.meth);
      if (headers.has_timestamp) dict["tseth"] = header_dict(headers.tseth);
  }
  return dict;
}

py::dict headers_dict(const roce::ParsedPacket& packet) {
  py::dict dict("destination_mac"_a = format_mac(packet.destination_mac),
                "source_mac"_a = format_mac(packet.source_mac), "source_ip"_a = format_ip(packet.source_ip),
                "destination_ip"_a = format_ip(packet.destination_ip), "dscp"_a = packet.dscp,
                "ecn"_a = packet.ecn, "hop_limit"_a = packet.hop_limit,
                "source_udp_port"_a = packet.source_udp_port, "bth"_a = header_dict(packet.bth));
  if (packet.source_ip.is_ipv6) {
    dict["flow_label"] = packet.flow_label;
  } else {
    dict["identification"] = packet.identification;
    dict["dont_fragment"] = packet.dont_fragment;
  }
  if (packet.telemetry) dict["telemetry"] = telemetry_dict(*packet.telemetry);
  add_extensions(dict, packet);
  if (packet.has(roce::kIsMrc)) dict["mrc"] = mrc_dict(packet);
  return dict;
}

std::string_view text_of(const py::bytes& data) { return static_cast<std::string_view>(data); }

const uint8_t* bytes_at(std::string_view data) { return reinterpret_cast<const uint8_t*>(data.data()); }

py::bytes build(const Record<"RoceHeaders">& dict, const py::bytes& payload) {
  const auto [headers, mrc] = all_headers_of(dict);
  const std::string_view view = text_of(payload);
  std::vector<uint8_t> frame;
  if (mrc) {
    frame.resize(mrc::frame_bytes(headers, *mrc, view.size()));
    mrc::write_frame(headers, *mrc, bytes_at(view), view.size(), frame.data());
  } else {
    frame.resize(roce::frame_bytes(headers, view.size()));
    roce::write_frame(headers, bytes_at(view), view.size(), frame.data());
  }
  return {reinterpret_cast<const char*>(frame.data()), frame.size()};
}

py::bytes build_mrc_as_length(const Record<"RoceHeaders">& dict, size_t payload_bytes) {
  const auto [headers, mrc] = all_headers_of(dict);
  PacketPool pool(std::make_shared<PacketStore>());
  PacketPtr packet = mrc::build_as_length(pool, headers, mrc.value_or(mrc::Headers()), payload_bytes);
  packet->materialise();
  return {reinterpret_cast<const char*>(packet->data()), packet->size()};
}

// A template with a pool of its own.
class TemplateOfHeaders {
 public:
  explicit TemplateOfHeaders(const Record<"RoceHeaders">& dict) : template_(headers_of(dict)) {}

  py::bytes build(const Record<"RoceHeaders">& dict, const py::bytes& payload) {
    const std::string_view view = text_of(payload);
    return frame_of(template_.build(pool_, headers_of(dict), bytes_at(view), view.size()));
  }
  py::bytes build_as_length(const Record<"RoceHeaders">& dict, size_t payload_bytes) {
    PacketPtr packet = template_.build_as_length(pool_, headers_of(dict), payload_bytes);
    packet->materialise();
    return frame_of(packet);
  }

 private:
  static py::bytes frame_of(const PacketPtr& packet) {
    return {reinterpret_cast<const char*>(packet->data()), packet->size()};
  }

  PacketPool pool_{std::make_shared<PacketStore>()};
  roce::HeaderTemplate template_;
};

Typed<"tuple[RoceHeaders, bytes]", py::tuple> parse(const py::bytes& frame) {
  const std::string_view view = text_of(frame);
  roce::ParsedPacket packet;
  const roce::ParseError error = roce::parse_frame(bytes_at(view), view.size(), packet);
  if (error != roce::ParseError::kNone) {
    throw std::invalid_argument(std::string("not a valid RoCEv2 frame: ") + roce::parse_error_name(error));
  }
  return py::make_tuple(headers_dict(packet),
                        py::bytes(reinterpret_cast<const char*>(packet.payload), packet.payload_bytes));
}

std::string parse_error(const py::bytes& frame) {
  const std::string_view view = text_of(frame);
  roce::ParsedPacket packet;
  return roce::parse_error_name(roce::parse_frame(bytes_at(view), view.size(), packet));
}

using UetHeaders = Typed<"list[tuple[str, dict[str, int]]]", py::list>;

template <size_t Index = 0>
std::string uet_header_names() {
  const std::string name = std::variant_alternative_t<Index, uet::Header>::kName;
  if constexpr (Index + 1 == std::variant_size_v<uet::Header>) {
    return name;
  } else {
    return name + ", " + uet_header_names<Index + 1>();
  }
}

template <size_t Index = 0>
uet::Header uet_header_of(const std::string& name, const py::dict& dict) {
  if constexpr (Index == std::variant_size_v<uet::Header>) {
    throw std::invalid_argument("headers: '" + name + "' is no header of UET (valid: " + uet_header_names() +
                                ")");
  } else {
    std::variant_alternative_t<Index, uet::Header> header;
    if (name != header.kName) return uet_header_of<Index + 1>(name, dict);
    FieldReader fields(dict, name);
    read_header(fields, header);
    fields.finish();
    return header;
  }
}

py::bytes build_uet(const UetHeaders& list, const py::bytes& payload) {
  std::vector<uet::Header> headers;
  for (const py::handle& each : list) {
    std::pair<std::string, py::dict> header;
    try {
      header = each.cast<std::pair<std::string, py::dict>>();
    } catch (const py::cast_error&) {
      throw std::invalid_argument("headers: " + py::repr(each).cast<std::string>() +
                                  " is no header (valid: a pair of a name and a dict of numbers)");
    }
    headers.push_back(uet_header_of(header.first, header.second));
  }
  const std::string_view view = text_of(payload);
  const std::vector<uint8_t> built = uet::build_packet(headers, bytes_at(view), view.size());
  return {reinterpret_cast<const char*>(built.data()), built.size()};
}

Typed<"tuple[list[tuple[str, dict[str, int]]], bytes]", py::tuple> parse_uet(const py::bytes& datagram) {
  const std::string_view view = text_of(datagram);
  uet::Packet packet;
  const uet::ParseError error = uet::parse_packet(bytes_at(view), view.size(), packet);
  if (error != uet::ParseError::kNone) {
    throw std::invalid_argument(std::string("not a valid UET packet: ") + uet::parse_error_name(error));
  }
  py::list headers;
  for (const uet::Header& header : packet.headers) {
    std::visit([&](const auto& each) { headers.append(py::make_tuple(each.kName, header_dict(each))); },
               header);
  }
  return py::make_tuple(headers,
                        py::bytes(reinterpret_cast<const char*>(packet.payload), packet.payload_bytes));
}

std::string uet_parse_error(const py::bytes& datagram) {
  const std::string_view view = text_of(datagram);
  uet::Packet packet;
  return uet::parse_error_name(uet::parse_packet(bytes_at(view), view.size(), packet));
}

template <size_t... Index>
void add_uet_fields(py::dict& dict, std::index_sequence<Index...>) {
  ((dict[std::variant_alternative_t<Index, uet::Header>::kName] =
        fields_list<std::variant_alternative_t<Index, uet::Header>>()),
   ...);
}

uint32_t icrc(const py::bytes& ip) {
  const std::string_view view = text_of(ip);
  const bool is_ipv6 = !view.empty() && static_cast<uint8_t>(view[0]) >> 4 == 6;
  const size_t least = (is_ipv6 ? roce::kIpv6Bytes : roce::kIpv4Bytes) + roce::kUdpBytes + roce::kBthBytes;
  if (view.size() < least) {
    throw std::invalid_argument("icrc() of " + std::to_string(view.size()) +
                                " bytes: less than IP, UDP and BTH headers (" + std::to_string(least) + ")");
  }
  return roce::invariant_crc(bytes_at(view), view.size());
}

}  // namespace

roce::MacAddress parse_mac(const std::string& text) {
  roce::MacAddress mac;
  std::array<unsigned, 6> octets{};
  int length = 0;
  const int count = std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x%n", &octets[0], &octets[1], &octets[2],
                                &octets[3], &octets[4], &octets[5], &length);
  if (count != 6 || static_cast<size_t>(length) != text.size()) {
    throw std::invalid_argument("'" + text + "' is not a MAC address (valid: 02:00:00:00:00:01)");
  }
  for (size_t i = 0; i < mac.size(); ++i) mac[i] = static_cast<uint8_t>(octets[i]);
  return mac;
}

roce::IpAddress parse_ip(const std::string& text) {
  roce::IpAddress address;
  if (inet_pton(AF_INET, text.c_str(), address.bytes.data()) == 1) return address;
  address.is_ipv6 = true;
  if (inet_pton(AF_INET6, text.c_str(), address.bytes.data()) == 1) return address;
  throw std::invalid_argument("'" + text + "' is not an IP address (valid: 10.0.0.1, fd00::1)");
}

std::string format_mac(const roce::MacAddress& mac) {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
                mac[5]);
  return text;
}

std::string format_ip(const roce::IpAddress& address) {
  char text[INET6_ADDRSTRLEN];
  inet_ntop(address.is_ipv6 ? AF_INET6 : AF_INET, address.bytes.data(), text, sizeof text);
  return text;
}

roce::IntStack int_stack_of(const py::dict& dict) {
  roce::IntStack stack;
  FieldReader fields(dict, "telemetry");
  read_telemetry(fields, stack);
  fields.finish();
  return stack;
}

py::dict telemetry_dict(const roce::IntStack& stack) {
  py::list hops;
  for (const roce::IntHop& hop : stack.hops) {
    hops.append(header_dict(hop));
  }
  py::dict dict = header_dict(stack);
  dict["hops"] = hops;
  return dict;
}

void bind_codec(py::module_& m) {
  m.def("build_packet", &build, "headers"_a, "payload"_a = py::bytes(),
        R"doc(An Ethernet frame (without FCS): lengths, pad, checksums and iCRC computed, UDP checksum 0.

Headers of MRC (docs/spec/mrc.md) stand under "mrc", which MRC's opcodes need even if it is empty. MRC reserves
solicited, migrated, fecn and becn of the BTH: they are sent as 0. mrc.entropy sets source_udp_port and the low
half of flow_label.

Fields left out have RoCEv2's usual values (DSCP 26, ECT(0), hop limit 64, P_Key 0xFFFF) or 0. Raises
ValueError for unknown fields, values that do not fit, or a payload that the opcode does not carry.)doc");
  m.def("build_mrc_as_length", &build_mrc_as_length, "headers"_a, "payload_bytes"_a,
        "An MRC packet as build_packet() makes it, with zeros in place of payload, pad and iCRC.");
  py::class_<TemplateOfHeaders>(m, "HeaderTemplate", R"doc(What a queue pair builds its packets from.

Of the headers given to build(), addresses, DSCP, ECN, hop limit, identification, fragmentation, partition key,
destination queue pair, FECN and the migration bit are the template's.)doc")
      .def(py::init<const Record<"RoceHeaders">&>(), "headers"_a)
      .def("build", &TemplateOfHeaders::build, "headers"_a, "payload"_a = py::bytes(),
           "As build_packet(). Raises ValueError as it does.")
      .def("build_as_length", &TemplateOfHeaders::build_as_length, "headers"_a, "payload_bytes"_a,
           "The same with zeros in place of payload, pad and iCRC.");
  m.def("parse_packet", &parse, "frame"_a, R"doc(Headers and payload (without pad) of an Ethernet frame.

Of an MRC packet that a switch has trimmed, mrc.trimmed is true and the payload empty; its iCRC is not checked.
Raises ValueError, ending in parse_error()'s name, unless the frame is valid.)doc");
  m.def("parse_error", &parse_error, "frame"_a,
        "What parse_packet() would refuse the frame for: \"none\", \"not_roce\", \"truncated\", \"bad_icrc\" "
        "…");
  m.def("build_uet", &build_uet, "headers"_a, "payload"_a = py::bytes(),
        R"doc(A packet of Ultra Ethernet Transport, as UDP carries it (docs/spec/uet.md).

`headers` are pairs of a name in weft.wire.HEADERS and of numbers by the described names; those left out have
their defaults. Raises ValueError for unknown names, values that do not fit, and headers that a reader would not
read as these.)doc");
  m.def("parse_uet", &parse_uet, "datagram"_a,
        R"doc(Headers, as build_uet() takes them, and payload of a packet of Ultra Ethernet Transport.

Raises ValueError, ending in uet_parse_error()'s name, unless the packet is valid.)doc");
  m.def("uet_parse_error", &uet_parse_error, "datagram"_a,
        "What parse_uet() would refuse the packet for: \"none\", \"truncated\", \"encrypted\", "
        "\"unknown_type\" …");
  m.def(
      "header_fields",
      [] {
        py::dict dict =
            py::dict("BTH"_a = fields_list<roce::Bth>(), "DETH"_a = fields_list<roce::Deth>(),
                     "RETH"_a = fields_list<roce::Reth>(), "AtomicETH"_a = fields_list<roce::AtomicEth>(),
                     "AETH"_a = fields_list<roce::Aeth>(), "IntShim"_a = fields_list<roce::IntStack>(),
                     "IntHop"_a = fields_list<roce::IntHop>(),
                     "AggregationHeader"_a = fields_list<roce::AggregationHeader>(),
                     "MrcBTH"_a = fields_list<mrc::Bth>(), "METH"_a = fields_list<mrc::Meth>(),
                     "TSETH"_a = fields_list<mrc::Tseth>(), "SETH"_a = fields_list<mrc::Seth>(),
                     "CCState"_a = fields_list<mrc::CcState>(), "NETH"_a = fields_list<mrc::Neth>(),
                     "PETH"_a = fields_list<mrc::Peth>(), "ERTH"_a = fields_list<mrc::Erth>(),
                     "EETH"_a = fields_list<mrc::Eeth>(), "ServiceHeader"_a = fields_list<service::Header>(),
                     "SwitchNotification"_a = fields_list<switch_notification::Header>(),
                     "ParameterHeader"_a = fields_list<parameter::Header>());
        add_cm_fields(dict);
        add_uet_fields(dict, std::make_index_sequence<std::variant_size_v<uet::Header>>());
        return Typed<"dict[str, list[tuple[str, int]]]", py::dict>(dict);
      },
      R"doc(Names and widths in bits of the fields that the engine reads and writes, in wire order, by header.

Headers have the names of weft.wire.HEADERS; those of fields may differ.)doc");
  m.def(
      "icrc", &icrc, "ip_packet"_a,
      R"doc(Invariant CRC over a packet from its IP header up to, and without, the iCRC itself (annex A17.3.3).

It is sent little-endian. Raises ValueError if IP, UDP and BTH headers are not complete.)doc");
  m.def(
      "crc32",
      [](const py::bytes& data, bool portable) {
        const std::string_view view = text_of(data);
        const auto update = portable ? &crc32_update_portable : &crc32_update;
        return ~update(kCrc32Initial, bytes_at(view), view.size());
      },
      "data"_a, py::kw_only(), "portable"_a = false,
      "CRC-32 of IEEE 802.3, as zlib.crc32; portable: by tables whatever the CPU offers.");
}

}  // namespace weft
