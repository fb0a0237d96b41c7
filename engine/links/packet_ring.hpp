// The mapped receive ring (TPACKET_V2) of an AF_PACKET socket. Version 2 hands over frame by frame, without
// version 3's block timeouts, so a frame can be read as soon as it is there.
#pragma once

#include <linux/if_packet.h>

#include <cstddef>
#include <cstdint>

namespace weft {

class PacketRing {
 public:
  // Sets up and maps a ring of about ring_bytes whose slots hold frames of frame_bytes. Throws
  // std::system_error.
  PacketRing(int socket_fd, size_t frame_bytes, size_t ring_bytes);
  ~PacketRing();
  PacketRing(const PacketRing&) = delete;
  PacketRing& operator=(const PacketRing&) = delete;

  // The oldest frame the kernel has handed over, or null.
  const tpacket2_hdr* front() const {
    tpacket2_hdr* header = slot();
    return (__atomic_load_n(&header->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER) != 0 ? header : nullptr;
  }
  // Gives the front's slot back to the kernel.
  void pop() {
    __atomic_store_n(&slot()->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
    if (++slot_in_block_ == slots_per_block_) {
      slot_in_block_ = 0;
      if (++block_ == block_count_) block_ = 0;
    }
  }

 private:
  tpacket2_hdr* slot() const {
    return reinterpret_cast<tpacket2_hdr*>(memory_ + block_ * block_bytes_ + slot_in_block_ * slot_bytes_);
  }

  uint8_t* memory_ = nullptr;
  size_t slot_bytes_ = 0;
  size_t block_bytes_ = 0;
  size_t slots_per_block_ = 0;
  size_t block_count_ = 0;
  size_t block_ = 0;
  size_t slot_in_block_ = 0;
};

}  // namespace weft
