#include "roce_formats.hpp"

#include <array>

namespace weft::roce {
namespace {

constexpr uint16_t kUndefined = 0xFFFF;

constexpr std::array<uint16_t, 256> make_extensions() {
  std::array<uint16_t, 256> table{};
  for (auto& entry : table) entry = kUndefined;
  // SEND and WRITE exist alike for RC (0x00) and UC (0x20).
  for (const int transport : {0x00, 0x20}) {
    for (const Opcode opcode :
         {kRcSendFirst, kRcSendMiddle, kRcSendLast, kRcSendOnly, kRcWriteMiddle, kRcWriteLast}) {
      table[transport + opcode] = kHasPayload;
    }
    for (const Opcode opcode : {kRcSendLastImmediate, kRcSendOnlyImmediate, kRcWriteLastImmediate}) {
      table[transport + opcode] = kHasImmediate | kHasPayload;
    }
    for (const Opcode opcode : {kRcWriteFirst, kRcWriteOnly})
      table[transport + opcode] = kHasReth | kHasPayload;
    table[transport + kRcWriteOnlyImmediate] = kHasReth | kHasImmediate | kHasPayload;
  }
  table[kRcReadRequest] = kHasReth;
  for (const Opcode opcode : {kRcReadResponseFirst, kRcReadResponseLast, kRcReadResponseOnly}) {
    table[opcode] = kHasAeth | kHasPayload;
  }
  table[kRcReadResponseMiddle] = kHasPayload;
  table[kRcAcknowledge] = kHasAeth;
  table[kRcAtomicAcknowledge] = kHasAeth | kHasAtomicAckEth;
  table[kRcCompareSwap] = table[kRcFetchAdd] = kHasAtomicEth;
  table[kRcSendLastInvalidate] = table[kRcSendOnlyInvalidate] = kHasIeth | kHasPayload;
  table[kUdSendOnly] = kHasDeth | kHasPayload;
  table[kUdSendOnlyImmediate] = kHasDeth | kHasImmediate | kHasPayload;
  table[kCnp] = kHasCnpReserved;
  return table;
}

constexpr std::array<uint16_t, 256> kExtensions = make_extensions();

constexpr size_t sum_of_extensions(size_t extensions) {
  return ((extensions & kHasDeth) != 0 ? kDethBytes : 0) + ((extensions & kHasReth) != 0 ? kRethBytes : 0) +
         ((extensions & kHasAtomicEth) != 0 ? kAtomicEthBytes : 0) +
         ((extensions & kHasAeth) != 0 ? kAethBytes : 0) +
         ((extensions & kHasAtomicAckEth) != 0 ? kAtomicAckEthBytes : 0) +
         ((extensions & kHasImmediate) != 0 ? kImmediateBytes : 0) +
         ((extensions & kHasIeth) != 0 ? kIethBytes : 0) +
         ((extensions & kHasCnpReserved) != 0 ? kCnpReservedBytes : 0);
}

// Asked several times for every packet that is built or parsed.
constexpr std::array<uint8_t, 2 * kHasPayload> make_extension_bytes() {
  std::array<uint8_t, 2 * kHasPayload> table{};
  for (size_t extensions = 0; extensions < table.size(); ++extensions) {
    table[extensions] = static_cast<uint8_t>(sum_of_extensions(extensions));
  }
  return table;
}

constexpr std::array<uint8_t, 2 * kHasPayload> kExtensionBytes = make_extension_bytes();

}  // namespace

std::optional<uint16_t> opcode_extensions(uint8_t opcode) {
  const uint16_t extensions = kExtensions[opcode];
  if (extensions == kUndefined) return std::nullopt;
  return extensions;
}

size_t extension_bytes(uint16_t extensions) { return kExtensionBytes[extensions % kExtensionBytes.size()]; }

}  // namespace weft::roce
