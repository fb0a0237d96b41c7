#include "links/packet_ring.hpp"

#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>

namespace weft {

namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kSmallestBlockBytes = 16 * kPageBytes;
// What the kernel puts in front of a frame: the header, a sockaddr_ll, alignment to 16.
constexpr size_t kSlotOverheadBytes = 96;

}  // namespace

PacketRing::PacketRing(int socket_fd, size_t frame_bytes, size_t ring_bytes) {
  slot_bytes_ =
      (frame_bytes + kSlotOverheadBytes + TPACKET_ALIGNMENT - 1) / TPACKET_ALIGNMENT * TPACKET_ALIGNMENT;
  block_bytes_ = std::max(kSmallestBlockBytes, std::bit_ceil(slot_bytes_));
  slots_per_block_ = block_bytes_ / slot_bytes_;
  block_count_ = std::max<size_t>(1, ring_bytes / block_bytes_);

  const int version = TPACKET_V2;
  if (setsockopt(socket_fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0)
    throw std::system_error(errno, std::generic_category(), "PACKET_VERSION");
  tpacket_req request{};
  request.tp_block_size = static_cast<unsigned>(block_bytes_);
  request.tp_block_nr = static_cast<unsigned>(block_count_);
  request.tp_frame_size = static_cast<unsigned>(slot_bytes_);
  request.tp_frame_nr = static_cast<unsigned>(slots_per_block_ * block_count_);
  if (setsockopt(socket_fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) != 0)
    throw std::system_error(errno, std::generic_category(), "PACKET_RX_RING");
  void* memory = mmap(nullptr, block_bytes_ * block_count_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                      socket_fd, 0);
  if (memory == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), "mapping the receive ring");
  memory_ = static_cast<uint8_t*>(memory);
}

PacketRing::~PacketRing() { munmap(memory_, block_bytes_ * block_count_); }

}  // namespace weft
