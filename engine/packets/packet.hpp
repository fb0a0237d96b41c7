// Packets: bytes in pooled storage with headroom, and the few facts the engine keeps about each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "memory/cache_line.hpp"
#include "observe/traffic_counter.hpp"
#include "time/time.hpp"

namespace weft {

class Packet;
class PacketPool;
class PacketStore;
struct PacketPoolState;

struct PacketDeleter {
  void operator()(Packet* packet) const noexcept;
};
using PacketPtr = std::unique_ptr<Packet, PacketDeleter>;

// State a node hangs on a packet while it is out of the node's hands (a pipeline's metadata between ingress
// and egress). Released with the packet, wherever that happens (a tail drop for one); clone() does not copy
// it.
struct PacketContext {
  void (*release)(PacketContext*) noexcept = nullptr;
  uint16_t used_bytes = 0;  // from here on, up to 64 KB, that the node uses when it gets the packet back
};

// One cache line, and its bytes behind it.
//
// The last bytes may be virtual: zeros of which only the number is kept, so that large runs need no memory
// for payloads nobody looks at. size() and bytes() are without them, frame_bytes() is with them.
//
// A packet may stand for several like it that follow each other without a gap, a segment: it then has the
// bytes of the first. Links, queues and counters take it for all of them.
class alignas(64) Packet {
 public:
  static constexpr size_t kHeadroomBytes = 64;

  Packet(const Packet&) = delete;
  Packet& operator=(const Packet&) = delete;

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  std::span<uint8_t> bytes() { return {data_, size_}; }
  std::span<const uint8_t> bytes() const { return {data_, size_}; }
  // Bytes of one packet on the wire.
  size_t frame_bytes() const { return size_t{size_} + virtual_bytes_; }
  // Bytes that all packets it stands for take on the wire and in a queue.
  size_t wire_bytes() const {
    if (packets_ == 1) [[likely]]
      return frame_bytes();  // asked several times a hop
    return frame_bytes() * packets_ - size_t{once_words_} * kWordBytes * (packets_ - 1u);
  }
  // How many packets it stands for.
  static constexpr uint32_t kMaxPackets = 255;
  uint32_t packets() const { return packets_; }
  // once_bytes: of the frame's, that only one of them has; a multiple of 4 up to 28.
  void set_packets(uint32_t packets, size_t once_bytes = 0) {
    packets_ = static_cast<uint8_t>(packets);
    once_words_ = static_cast<uint8_t>(once_bytes / kWordBytes) & 7;
  }
  // Of a segment's packets, how many come before this one's first, and whether its last one is the segment's.
  uint32_t segment_offset() const { return segment_offset_; }
  bool ends_segment() const { return ends_segment_; }
  // Takes its first packet out of it: becomes that one, and `rest`, a copy of it, the others.
  void split(Packet& rest) {
    rest.segment_offset_ = (segment_offset_ + 1) & 0xff;
    rest.packets_ = static_cast<uint8_t>(packets_ - 1);
    rest.virtual_bytes_ -= static_cast<uint32_t>(once_words_ * kWordBytes);
    rest.once_words_ = 0;
    packets_ = 1;
    ends_segment_ = false;
  }
  TrafficCounter traffic() const { return {packets_, wire_bytes()}; }
  size_t virtual_bytes() const { return virtual_bytes_; }
  // Whether it was made with virtual bytes: what covers the payload, as RoCEv2's iCRC does, was never
  // computed and cannot be checked, not even once the bytes have been written out.
  bool as_length() const { return as_length_; }
  // Whether a link has got bits of it wrong: the MAC at its far end drops it.
  bool damaged() const { return damaged_; }
  void set_damaged() { damaged_ = true; }
  // The class that the port that sent it last took it from; what the link header of InfiniBand calls the
  // virtual lane. kNoLane if no port of this engine has sent it.
  static constexpr int kNoLane = 0xff;
  int virtual_lane() const { return virtual_lane_; }
  void set_virtual_lane(int virtual_lane) { virtual_lane_ = static_cast<uint8_t>(virtual_lane); }
  // What it was sent for, as whoever posted it numbers kinds of traffic: no bytes of it say so. 0 if nobody
  // has said, the last kind of what queue pairs send on their own account (acknowledgements, CNPs).
  static constexpr size_t kTrafficKinds = 256;
  static constexpr uint8_t kControlTraffic = kTrafficKinds - 1;
  uint8_t traffic_kind() const { return traffic_kind_; }
  void set_traffic_kind(uint8_t traffic_kind) { traffic_kind_ = traffic_kind; }

  size_t headroom() const { return static_cast<size_t>(data_ - storage_); }
  size_t tailroom() const { return capacity_ - headroom() - size_; }

  // Adds n bytes (not initialised) at the front and returns the new front. Storage grows if it must.
  uint8_t* prepend(size_t n) {
    if (n > headroom()) [[unlikely]]
      reserve(n + kHeadroomBytes, tailroom());
    data_ -= n;
    size_ += static_cast<uint32_t>(n);
    return data_;
  }

  // All that may be written to before the byte at n (at most size()): the headroom and the first n bytes.
  std::span<uint8_t> room_before(size_t n) { return {storage_, headroom() + n}; }
  // Has the packet begin with the last new_bytes of room_before(old_bytes), instead of its first old_bytes.
  void replace_front(size_t old_bytes, size_t new_bytes) {
    data_ = data_ + old_bytes - new_bytes;
    size_ = static_cast<uint32_t>(size_ + new_bytes - old_bytes);
  }
  // Makes room for n bytes before the packet.
  void reserve_headroom(size_t n) {
    if (n > headroom()) reserve(n, tailroom());
  }

  // Removes n bytes (at most size()) from the front. Throws std::out_of_range beyond that.
  void trim_front(size_t n) {
    if (n > size_) [[unlikely]]
      throw_trim(n);
    data_ += n;
    size_ -= static_cast<uint32_t>(n);
  }

  // Adds n virtual bytes at the end.
  void append_virtual(size_t n) {
    virtual_bytes_ += static_cast<uint32_t>(n);
    as_length_ = true;
  }

  // Writes the virtual bytes out as zeros, so that they can be read.
  void materialise() {
    if (virtual_bytes_ != 0) resize(frame_bytes());
  }

  // Makes each packet n bytes long on the wire: cuts the tail, or adds zeros to it. Virtual bytes that are
  // left stay so if the packet becomes shorter.
  void resize(size_t n) {
    if (n > size_ && n < frame_bytes()) {
      virtual_bytes_ = static_cast<uint32_t>(n - size_);
      return;
    }
    virtual_bytes_ = 0;
    if (n > size_) {
      if (n - size_ > tailroom()) [[unlikely]]
        reserve(headroom(), n - size_);
      std::memset(data_ + size_, 0, n - size_);
    }
    size_ = static_cast<uint32_t>(n);
  }

  // A packet of the same pool with the same bytes, virtual ones too, lane, kind and received_ps.
  PacketPtr clone() const;

  // The node that hung its state on it has done with it.
  void release_context() {
    if (context == nullptr) return;
    context->release(context);
    context = nullptr;
  }

  // A packet is with a node, waits in a queue, or is under way in a chain of others
  // (packets/packet_chain.hpp).
  union {
    TimePs received_ps = 0;  // when it entered the node that holds it: set by links and packet sockets
    TimePs enqueued_ps;
    TimePs follower_due_ps;
  };
  union {
    PacketContext* context = nullptr;
    Packet* follower;
  };

 private:
  static constexpr size_t kWordBytes = 4;
  friend class PacketPool;
  friend class PacketStore;
  friend struct PacketPoolState;
  friend struct PacketDeleter;

  Packet() = default;
  ~Packet() = default;
  void reserve(size_t headroom_bytes, size_t tailroom_bytes);
  [[noreturn]] void throw_trim(size_t n) const;

  uint8_t* data_ = nullptr;
  uint8_t* storage_ = nullptr;  // behind this object, or grown_ when that was too small
  uint32_t size_ = 0;
  uint32_t capacity_ = 0;
  PacketPoolState* pool_ = nullptr;
  std::unique_ptr<uint8_t[]> grown_;
  uint32_t virtual_bytes_ : 24 = 0;
  uint32_t segment_offset_ : 8 = 0;
  bool as_length_ : 1 = false;
  bool damaged_ : 1 = false;
  bool ends_segment_ : 1 = true;
  uint8_t once_words_ : 3 = 0;
  uint8_t virtual_lane_ = kNoLane;
  uint8_t traffic_kind_ = 0;
  uint8_t packets_ = 1;
};

static_assert(sizeof(Packet) == 64);

// What is left of a pool as long as packets of it live. Written to for every packet.
struct alignas(kApartBytes) PacketPoolState : InCacheLines {
  std::shared_ptr<PacketStore> store;
  uint64_t live = 0;
  bool abandoned = false;

  Packet* take(size_t size);
  void give_back(Packet* packet);
};

// Where packets come from. Belongs to an engine and is used under its lock; packets may outlive it.
class PacketPool {
 public:
  explicit PacketPool(std::shared_ptr<PacketStore> store);
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // A packet of size bytes, not initialised, with Packet::kHeadroomBytes in front.
  PacketPtr allocate(size_t size);
  PacketPtr copy_of(std::span<const uint8_t> bytes);
  // Packets handed out and not yet released.
  uint64_t live_packets() const { return state_->live; }

  PacketStore& store() const { return *state_->store; }
  // Prefetches what every packet of it changes.
  void fetch() const { __builtin_prefetch(state_, 1); }
  // Where storage is taken from and returned to from now on.
  void use_store(std::shared_ptr<PacketStore> store);
  // Lets a packet of this pool go to another one, which claims it (maybe in another thread, later).
  Packet* part_with(PacketPtr packet) {
    packet->release_context();
    --state_->live;
    return packet.release();
  }
  // A packet that another pool has parted with is this one's. Before that, it must not be released.
  void claim(Packet& packet) {
    packet.pool_ = state_;
    ++state_->live;
  }

 private:
  PacketPoolState* state_;
};

}  // namespace weft
