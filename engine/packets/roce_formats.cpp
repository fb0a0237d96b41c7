#include "packets/roce_formats.hpp"

#include "packets/mrc_formats.hpp"

namespace weft::roce {
namespace {

constexpr std::array<uint16_t, 256> make_extensions() {
  std::array<uint16_t, 256> table{};
  for (auto& entry : table) entry = kUndefinedOpcode;
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
  table[kReadAcknowledge] = kHasAeth;
  for (const mrc::Opcode opcode : {mrc::kWriteFirst, mrc::kWriteMiddle, mrc::kWriteLast, mrc::kWriteOnly}) {
    table[opcode] = kIsMrc | kHasReth | kHasPayload;
  }
  for (const mrc::Opcode opcode : {mrc::kWriteLastImmediate, mrc::kWriteOnlyImmediate}) {
    table[opcode] = kIsMrc | kHasReth | kHasImmediate | kHasPayload;
  }
  table[mrc::kAcknowledge] = kIsMrc | kHasAeth;
  for (const mrc::Opcode opcode :
       {mrc::kEndpointRequest, mrc::kEndpointResponse, mrc::kSack, mrc::kNack, mrc::kReliabilityProbe}) {
    table[opcode] = kIsMrc;
  }
  return table;
}

constexpr size_t sum_of_extensions(size_t extensions) {
  return ((extensions & kHasDeth) != 0 ? kDethBytes : 0) + ((extensions & kHasReth) != 0 ? kRethBytes : 0) +
         ((extensions & kHasAtomicEth) != 0 ? kAtomicEthBytes : 0) +
         ((extensions & kHasAeth) != 0 ? kAethBytes : 0) +
         ((extensions & kHasAtomicAckEth) != 0 ? kAtomicAckEthBytes : 0) +
         ((extensions & kHasImmediate) != 0 ? kImmediateBytes : 0) +
         ((extensions & kHasIeth) != 0 ? kIethBytes : 0) +
         ((extensions & kHasCnpReserved) != 0 ? kCnpReservedBytes : 0);
}

constexpr std::array<uint8_t, 2 * kHasPayload> make_extension_bytes() {
  std::array<uint8_t, 2 * kHasPayload> table{};
  for (size_t extensions = 0; extensions < table.size(); ++extensions) {
    table[extensions] = static_cast<uint8_t>(sum_of_extensions(extensions));
  }
  return table;
}

}  // namespace

constinit const std::array<uint16_t, 256> kOpcodeExtensions = make_extensions();
constinit const std::array<uint8_t, 2 * kHasPayload> kExtensionBytes = make_extension_bytes();

}  // namespace weft::roce
