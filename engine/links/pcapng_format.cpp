#include "links/pcapng_format.hpp"

#include <cstring>

namespace weft::pcapng {
namespace {

constexpr uint32_t kSectionHeader = 0x0A0D0D0A;
constexpr uint32_t kInterfaceDescription = 1;
constexpr uint32_t kEnhancedPacket = 6;
constexpr uint32_t kByteOrderMagic = 0x1A2B3C4D;
constexpr uint16_t kLinkTypeEthernet = 1;
constexpr uint64_t kUnknownSectionLength = ~0ull;

enum Option : uint16_t {
  kEnd = 0,
  kEpbFlags = 2,
  kIfName = 2,
  kIfDescription = 3,
  kShbApplication = 4,
  kIfSpeed = 8,
  kIfTimeResolution = 9,
};

class Bytes {
 public:
  template <class T>
  void add(T value) {
    const auto* begin = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), begin, begin + sizeof value);
  }
  void add_option(Option code, const void* value, size_t size) {
    add<uint16_t>(code);
    add<uint16_t>(static_cast<uint16_t>(size));
    const auto* begin = static_cast<const uint8_t*>(value);
    bytes_.insert(bytes_.end(), begin, begin + size);
    pad();
  }
  void add_option(Option code, const std::string& text) {
    if (!text.empty()) add_option(code, text.data(), text.size());
  }
  void end_options() { add_option(kEnd, nullptr, 0); }
  void pad() { bytes_.resize((bytes_.size() + 3) & ~size_t{3}); }
  // Puts type and length around a block's body, and the length again behind it.
  void add_block(uint32_t type, const Bytes& body) {
    const auto length = static_cast<uint32_t>(12 + body.bytes_.size());
    add(type);
    add(length);
    bytes_.insert(bytes_.end(), body.bytes_.begin(), body.bytes_.end());
    add(length);
  }
  std::vector<uint8_t> take() { return std::move(bytes_); }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace

std::vector<uint8_t> file_header(const CaptureInterface& interface, uint32_t snap_length) {
  Bytes section;
  section.add(kByteOrderMagic);
  section.add<uint16_t>(1);  // version 1.0
  section.add<uint16_t>(0);
  section.add(kUnknownSectionLength);
  section.add_option(kShbApplication, "Weft");
  section.end_options();

  Bytes description;
  description.add(kLinkTypeEthernet);
  description.add<uint16_t>(0);
  description.add(snap_length);
  description.add_option(kIfName, interface.name);
  description.add_option(kIfDescription, interface.description);
  if (interface.rate_bps != 0)
    description.add_option(kIfSpeed, &interface.rate_bps, sizeof interface.rate_bps);
  constexpr uint8_t kNanoseconds = 9;  // 10^-9
  description.add_option(kIfTimeResolution, &kNanoseconds, 1);
  description.end_options();

  Bytes file;
  file.add_block(kSectionHeader, section);
  file.add_block(kInterfaceDescription, description);
  return file.take();
}

PacketBlock packet_block(uint64_t time_ns, uint32_t captured_bytes, uint32_t original_bytes,
                         CaptureDirection direction) {
  const uint32_t padding = (4 - captured_bytes % 4) % 4;
  Bytes options;
  if (direction != CaptureDirection::kUnknown) {
    const auto flags = static_cast<uint32_t>(direction);
    options.add_option(kEpbFlags, &flags, sizeof flags);
    options.end_options();
  }
  const std::vector<uint8_t> option_bytes = options.take();
  const auto length = static_cast<uint32_t>(32 + captured_bytes + padding + option_bytes.size());

  Bytes before;
  before.add(kEnhancedPacket);
  before.add(length);
  before.add<uint32_t>(0);  // interface
  before.add(static_cast<uint32_t>(time_ns >> 32));
  before.add(static_cast<uint32_t>(time_ns));
  before.add(captured_bytes);
  before.add(original_bytes);

  PacketBlock block{before.take(), std::vector<uint8_t>(padding)};
  block.after.insert(block.after.end(), option_bytes.begin(), option_bytes.end());
  const auto* tail = reinterpret_cast<const uint8_t*>(&length);
  block.after.insert(block.after.end(), tail, tail + sizeof length);
  return block;
}

}  // namespace weft::pcapng
