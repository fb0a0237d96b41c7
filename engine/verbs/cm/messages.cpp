#include "verbs/cm/messages.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace weft::cm {

namespace {

constexpr size_t kMadHeaderBytes = wire::kHeaderBytes<MadHeader>;
static_assert(kMadHeaderBytes == 24);

template <class Part>
constexpr bool kFillsMad =
    kMadHeaderBytes + wire::kHeaderBytes<Part> + Part::kInfoBytes + Part::kPrivateBytes == kMadBytes &&
    Part::kInfoBytes <= kMostInfoBytes && Part::kPrivateBytes <= kMostPrivateBytes;

template <size_t... Index>
constexpr bool bodies_fill_mads(std::index_sequence<Index...>) {
  return (kFillsMad<std::variant_alternative_t<Index, Body>> && ...);
}
static_assert(bodies_fill_mads(std::make_index_sequence<std::variant_size_v<Body>>()));

// Makes the body of an attribute; false if there is none.
template <size_t Index = 0>
bool make_body(uint16_t attribute, Body& body) {
  if constexpr (Index == std::variant_size_v<Body>) {
    return false;
  } else if (attribute == std::variant_alternative_t<Index, Body>::kAttribute) {
    body.emplace<Index>();
    return true;
  } else {
    return make_body<Index + 1>(attribute, body);
  }
}

}  // namespace

const char* attribute_name(uint16_t attribute) {
  static constexpr const char* kNames[kAttributes] = {"req",  "mra",  "rej",      "rep",     "rtu",
                                                      "dreq", "drep", "sidr_req", "sidr_rep"};
  return attribute >= kReq && attribute < kReq + kAttributes ? kNames[attribute - kReq] : nullptr;
}

const char* parse_error_name(ParseError error) {
  static constexpr const char* kNames[kParseErrors] = {"none",          "wrong_length", "wrong_class",
                                                       "wrong_version", "wrong_method", "unknown_attribute"};
  return kNames[static_cast<size_t>(error)];
}

void Message::set_private_data(std::span<const uint8_t> data) {
  private_data.fill(0);
  std::copy_n(data.begin(), std::min(data.size(), private_data.size()), private_data.begin());
}

size_t private_bytes_of(const Body& body) {
  return std::visit([](const auto& part) { return std::remove_cvref_t<decltype(part)>::kPrivateBytes; },
                    body);
}

size_t info_bytes_of(const Body& body) {
  return std::visit([](const auto& part) { return std::remove_cvref_t<decltype(part)>::kInfoBytes; }, body);
}

ParseError parse_message(std::span<const uint8_t> bytes, Message& out) {
  if (bytes.size() != kMadBytes) return ParseError::kWrongLength;
  wire::load_header(out.mad, bytes.data());
  const MadHeader expected;
  if (out.mad.management_class != expected.management_class) return ParseError::kWrongClass;
  if (out.mad.base_version != expected.base_version || out.mad.class_version != expected.class_version)
    return ParseError::kWrongVersion;
  if (out.mad.method != expected.method) return ParseError::kWrongMethod;
  if (!make_body(out.mad.attribute_id, out.body)) return ParseError::kUnknownAttribute;
  std::visit(
      [&](auto& part) {
        using Part = std::remove_cvref_t<decltype(part)>;
        const uint8_t* at = bytes.data() + kMadHeaderBytes;
        wire::load_header(part, at);
        at += wire::kHeaderBytes<Part>;
        out.info.fill(0);
        std::copy_n(at, Part::kInfoBytes, out.info.begin());
        out.private_data.fill(0);
        std::copy_n(at + Part::kInfoBytes, Part::kPrivateBytes, out.private_data.begin());
      },
      out.body);
  return ParseError::kNone;
}

MadBytes build_message(const Message& message) {
  MadBytes bytes{};
  std::visit(
      [&](const auto& part) {
        using Part = std::remove_cvref_t<decltype(part)>;
        MadHeader mad = message.mad;
        mad.attribute_id = Part::kAttribute;
        uint8_t* at = wire::store_header(part, wire::store_header(mad, bytes.data()));
        at = std::copy_n(message.info.begin(), Part::kInfoBytes, at);
        std::copy_n(message.private_data.begin(), Part::kPrivateBytes, at);
      },
      message.body);
  return bytes;
}

}  // namespace weft::cm
