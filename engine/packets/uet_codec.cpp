#include "packets/uet_codec.hpp"

#include <cstring>
#include <stdexcept>
#include <string>

namespace weft::uet {
namespace {

constexpr uint8_t kSynFlag = 0x04;  // of the second byte of requests and control packets

// What is left of a packet, and the headers that were read from it.
class Reader {
 public:
  Reader(const uint8_t* at, size_t bytes, Packet& out) : at_(at), left_(bytes), out_(out) {}

  const uint8_t* at() const { return at_; }
  bool has(size_t bytes) const { return left_ >= bytes; }

  // Reads a header; null if it is not whole. The result is valid until the next call.
  template <class Each>
  const Each* read() {
    if (!has(wire::kHeaderBytes<Each>)) return nullptr;
    Each& header = out_.headers.emplace_back().emplace<Each>();
    wire::load_header(header, at_);
    at_ += wire::kHeaderBytes<Each>;
    left_ -= wire::kHeaderBytes<Each>;
    return &header;
  }

  template <class Each>
  ParseError expect() {
    return read<Each>() == nullptr ? ParseError::kTruncated : ParseError::kNone;
  }

  void finish() {
    out_.payload = at_;
    out_.payload_bytes = left_;
  }

 private:
  const uint8_t* at_;
  size_t left_;
  Packet& out_;
};

ParseError parse_atomic(Reader& reader) {
  const Atomic* const atomic = reader.read<Atomic>();
  if (atomic == nullptr) return ParseError::kTruncated;
  return is_compare_and_swap(atomic->atomic_code) ? reader.expect<CompareSwap>() : ParseError::kNone;
}

template <class Request>
ParseError parse_request(Reader& reader, uint8_t opcode) {
  if (!reader.has(wire::kHeaderBytes<Request>)) return ParseError::kTruncated;
  if (wire::load_field<Request, "version">(reader.at()) != 0) return ParseError::kBadVersion;
  reader.read<Request>();
  return has_atomic_extension(opcode) ? parse_atomic(reader) : ParseError::kNone;
}

template <class First, class Later>
ParseError parse_standard(Reader& reader, uint8_t opcode, bool is_first) {
  return is_first ? parse_request<First>(reader, opcode) : parse_request<Later>(reader, opcode);
}

ParseError parse_standard(Reader& reader, uint8_t opcode) {
  if (opcode == kDeferrableRestart) return parse_request<Restart>(reader, opcode);
  const bool is_first = (reader.at()[1] & 1) != 0;
  if (is_deferrable(opcode))
    return parse_standard<Deferrable, DeferrableContinuation>(reader, opcode, is_first);
  const ParseError error = parse_standard<Standard, Continuation>(reader, opcode, is_first);
  if (error != ParseError::kNone || !has_rendezvous_extension(opcode)) return error;
  return reader.expect<Rendezvous>();
}

template <class Each>
ParseError parse_response(Reader& reader) {
  if (!reader.has(wire::kHeaderBytes<Each>)) return ParseError::kTruncated;
  if (wire::load_field<Each, "version">(reader.at()) != 0) return ParseError::kBadVersion;
  return reader.expect<Each>();
}

ParseError parse_semantic(Reader& reader, uint8_t next_header) {
  switch (next_header) {
    case kNone:
      return ParseError::kNone;
    case kResponse:
      return parse_response<Response>(reader);
    case kResponseData:
      return parse_response<ResponseData>(reader);
    case kResponseDataSmall:
      return parse_response<SmallResponseData>(reader);
    case kRequestSmall:
    case kRequestMedium:
    case kRequestStandard:
      break;
    default:
      return ParseError::kUnknownNextHeader;
  }
  if (!reader.has(2)) return ParseError::kTruncated;
  const uint8_t opcode = reader.at()[0] & 0x3F;
  if (opcode >= kRequestOpcodes) return ParseError::kUnknownOpcode;
  if (next_header == kRequestSmall) return parse_request<Small>(reader, opcode);
  if (next_header == kRequestMedium) return parse_request<Medium>(reader, opcode);
  return parse_standard(reader, opcode);
}

// Reads a header and then what its `next_header` says.
template <class Each>
ParseError parse_with_semantic(Reader& reader) {
  const Each* const header = reader.read<Each>();
  return header == nullptr ? ParseError::kTruncated : parse_semantic(reader, header->next_header);
}

template <class Each>
ParseError parse_with_cc_state(Reader& reader) {
  const Each* const header = reader.read<Each>();
  if (header == nullptr) return ParseError::kTruncated;
  const uint8_t next_header = header->next_header;
  const ParseError error = reader.expect<RequestCcState>();
  return error == ParseError::kNone ? parse_semantic(reader, next_header) : error;
}

ParseError parse_cc_state(Reader& reader, uint8_t cc_type) {
  if (cc_type == kNscc) return reader.expect<NsccState>();
  return cc_type == kCredit ? reader.expect<CreditState>() : reader.expect<OtherCcState>();
}

ParseError parse_ack_cc(Reader& reader, uint8_t type) {
  const Ack* const ack = reader.read<Ack>();
  if (ack == nullptr) return ParseError::kTruncated;
  const uint8_t next_header = ack->next_header;
  const AckCc* const extension = reader.read<AckCc>();
  if (extension == nullptr) return ParseError::kTruncated;
  const ParseError error =
      type == kAckCcx ? reader.expect<CcxState>() : parse_cc_state(reader, extension->cc_type);
  return error == ParseError::kNone ? parse_semantic(reader, next_header) : error;
}

ParseError parse_headers(Reader& reader) {
  if (!reader.has(2)) return ParseError::kTruncated;
  const uint8_t type = reader.at()[0] >> 3;
  const bool has_syn = (reader.at()[1] & kSynFlag) != 0;
  switch (type) {
    case kEncrypted:
      return ParseError::kEncrypted;
    case kRudRequest:
    case kRodRequest:
      return has_syn ? parse_with_semantic<SynRequest>(reader) : parse_with_semantic<Request>(reader);
    case kRudCcRequest:
    case kRodCcRequest:
      return has_syn ? parse_with_cc_state<SynRequest>(reader) : parse_with_cc_state<Request>(reader);
    case kRudiRequest:
    case kRudiResponse:
      return parse_with_semantic<Rudi>(reader);
    case kUudRequest:
      return parse_with_semantic<Uud>(reader);
    case kAck:
      return parse_with_semantic<Ack>(reader);
    case kAckCc:
    case kAckCcx:
      return parse_ack_cc(reader, type);
    case kNack:
      return reader.expect<Nack>();
    case kNackCcx: {
      const ParseError error = reader.expect<Nack>();
      return error == ParseError::kNone ? reader.expect<NackCcx>() : error;
    }
    case kControl:
      return has_syn ? reader.expect<SynControl>() : reader.expect<Control>();
    default:
      return ParseError::kUnknownType;
  }
}

template <class Each>
void check_widths(const Each& header) {
  if (!wire::is_too_wide(header)) return;
  wire::for_each_member<Each>([&](const char* field, size_t bits, auto member) {
    const uint64_t value = wire::as_bits(header.*member);
    if ((value & ~wire::mask_of(bits)) == 0) return;
    throw std::invalid_argument(std::string(Each::kName) + "." + field + " is " + std::to_string(value) +
                                ", which is more than " + std::to_string(bits) + " bits");
  });
}

std::string names_of(const std::vector<Header>& headers) {
  std::string names;
  for (const Header& header : headers) {
    std::visit([&](const auto& each) { names += (names.empty() ? "" : ", ") + std::string(each.kName); },
               header);
  }
  return names.empty() ? "none" : names;
}

}  // namespace

const char* parse_error_name(ParseError error) {
  switch (error) {
    case ParseError::kNone:
      return "none";
    case ParseError::kTruncated:
      return "truncated";
    case ParseError::kEncrypted:
      return "encrypted";
    case ParseError::kUnknownType:
      return "unknown_type";
    case ParseError::kUnknownNextHeader:
      return "unknown_next_header";
    case ParseError::kUnknownOpcode:
      return "unknown_opcode";
    case ParseError::kBadVersion:
      return "bad_version";
  }
  return "unknown";
}

ParseError parse_packet(const uint8_t* at, size_t bytes, Packet& out) {
  Reader reader(at, bytes, out);
  const ParseError error = parse_headers(reader);
  if (error == ParseError::kNone) reader.finish();
  return error;
}

std::vector<uint8_t> build_packet(const std::vector<Header>& headers, const uint8_t* payload,
                                  size_t payload_bytes) {
  size_t header_bytes = 0;
  for (const Header& header : headers) {
    std::visit(
        [&]<class Each>(const Each& each) {
          check_widths(each);
          header_bytes += wire::kHeaderBytes<Each>;
        },
        header);
  }
  std::vector<uint8_t> built(header_bytes + payload_bytes);
  uint8_t* at = built.data();
  for (const Header& header : headers) {
    at = std::visit([&](const auto& each) { return wire::store_header(each, at); }, header);
  }
  // Before the payload is there: what it begins with must not stand for a header that is missing.
  Packet read;
  const ParseError error = parse_packet(built.data(), header_bytes, read);
  if (error != ParseError::kNone || read.headers != headers) {
    throw std::invalid_argument(
        "headers " + names_of(headers) + " are read as " + names_of(read.headers) +
        (error == ParseError::kNone ? "" : std::string(" and then ") + parse_error_name(error)) +
        ": types, next_header, syn, som and opcodes say which headers follow");
  }
  if (payload != nullptr && payload_bytes != 0) std::memcpy(at, payload, payload_bytes);
  return built;
}

}  // namespace weft::uet
