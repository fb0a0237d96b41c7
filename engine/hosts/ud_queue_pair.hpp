// An unreliable-datagram (UD) queue pair: SENDs of one packet to any queue pair of any host, or to a
// multicast group. Nothing is acknowledged; what is dropped is counted. Queue pair 1, that of connection
// managers, is one with this number and kManagementQueueKey. Pure state: no clock, no I/O. Source: InfiniBand
// Architecture Specification volume 1, section 9.8.3; annex A17 (RoCEv2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hosts/posted_receives.hpp"
#include "hosts/posted_requests.hpp"
#include "hosts/queue_pair.hpp"
#include "hosts/rc_request.hpp"
#include "hosts/request_completions.hpp"
#include "memory/ring_buffer.hpp"
#include "observe/statistics.hpp"
#include "packets/packet.hpp"
#include "packets/roce_codec.hpp"

namespace weft {

class UdGroups;

constexpr uint32_t kManagementQueuePair = 1;
constexpr uint32_t kManagementQueueKey = 0x80010000;
// Before the data in a receive: the IPv6 header, or 20 bytes that mean nothing and the IPv4 header (annex
// A17).
constexpr size_t kGrhBytes = 40;

struct UdConfig {
  uint32_t queue_pair = 0;  // own number, 24 bits
  roce::MacAddress source_mac{};
  std::vector<roce::IpAddress> source_ips;  // the port's: of each IP version the first is the source
  uint64_t entropy_seed = 0;                // draws source ports for handles that say none
  uint8_t data_class = roce::kDataClass;    // in which datagrams wait to be sent
  uint32_t path_mtu_bytes = 1024;           // 256, 512, 1024, 2048 or 4096: the longest datagram sent
  uint32_t q_key = 0;
  uint32_t initial_psn = 0;  // 24 bits
};

// Where a datagram goes.
struct AddressHandle {
  roce::IpAddress ip;
  roce::MacAddress mac{};  // of the gateway, of the peer on the same link, or of the group
  std::optional<roce::IpAddress> source_ip{};  // one of the port's; nullopt: the first of this IP version
  std::optional<uint8_t> dscp{};               // 6 bits; nullopt: that of the queue pair's class
  uint8_t hop_limit = 64;
  // Path of the datagram: of IPv6 its flow label, 20 bits, and in either version the source port that Linux's
  // RDMA core folds it into. 0: both are drawn for the two ends.
  uint32_t flow_label = 0;
};

struct UdRequest : RcRequest {  // of it: work_id, record_id, data, length_bytes, immediate, owner, foreign
  AddressHandle to;
  uint32_t remote_queue_pair = 0;  // kMulticastQueuePair for a group
  uint32_t remote_q_key = 0;       // with the highest bit set: the queue pair's own goes instead
};

#define WEFT_UD_COUNTERS(STATISTIC)                                                                       \
  STATISTIC(uint64_t, datagrams_sent, "")                                                                 \
  STATISTIC(uint64_t, bytes_sent, "payload")                                                              \
  STATISTIC(uint64_t, datagrams_received, "in a receive")                                                 \
  STATISTIC(uint64_t, bytes_received, "payload, in a receive")                                            \
  STATISTIC(uint64_t, datagrams_looped, "sent to the port itself, or to a group of which it is a member") \
  STATISTIC(uint64_t, loops_without_queue_pair, "sent to the port itself, where none has that number")    \
  STATISTIC(uint64_t, loops_dropped, "of those looped, not delivered before their sender had failed")     \
  STATISTIC(uint64_t, bad_q_key, "dropped: another Q_Key than the queue pair's")                          \
  STATISTIC(uint64_t, datagrams_without_receive, "dropped: no receive was posted")                        \
  STATISTIC(uint64_t, datagrams_too_long,                                                                 \
            "dropped: longer than their receive, with the 40 bytes before them")                          \
  STATISTIC(uint64_t, wrong_partition_key, "dropped")                                                     \
  STATISTIC(uint64_t, unexpected_opcode, "dropped: no datagram")                                          \
  STATISTIC(uint64_t, dropped_in_error, "dropped: arrived after the queue pair had failed")

struct UdCounters {
  WEFT_STATISTICS(UdCounters, WEFT_UD_COUNTERS)
};

class UdQueuePair : public QueuePair {
 public:
  // `pool` and `handler` outlive the queue pair; `handler` may be null, and so may `groups`: then it is
  // member of none. With `shared_receives` it takes its receives from there. Throws std::invalid_argument for
  // parameters out of range.
  UdQueuePair(const UdConfig& config, PacketPool& pool, CompletionHandler* handler,
              std::shared_ptr<UdGroups> groups = nullptr,
              std::shared_ptr<SharedReceives> shared_receives = nullptr);
  ~UdQueuePair() override;

  // Posts a SEND, which completes with kSend when it has left. Throws std::invalid_argument for a datagram
  // that is longer than the path MTU, whose addresses the port cannot send to, or that a NIC would take for
  // in-network aggregation.
  void post(TimePs now, UdRequest request);
  // Posts a buffer for a datagram and the kGrhBytes before it. It completes with kReceive and the length of
  // both.
  void post_receive(TimePs now, PostedReceive receive);
  // What is posted completes as flushed, and nothing more is sent or received.
  void flush(TimePs now);
  // Becomes a member of a group at its port, or leaves it. Throw std::invalid_argument if it is a member, or
  // none, if it was made without groups, or if something else at the port has the group.
  void join(const roce::IpAddress& group);
  void leave(const roce::IpAddress& group);
  CompletionStatus error() const { return error_; }
  size_t outstanding_requests() const { return requests_.size(); }
  void set_q_key(uint32_t q_key) { config_.q_key = q_key; }
  // Whether copies of its own datagrams to groups leave it out (IBV_QP_CREATE_BLOCK_SELF_MCAST_LB).
  void block_own_copies(bool block) { blocks_own_copies_ = block; }

  // Of the datagram that was received last, while its completion is reported and after.
  bool is_newest_ipv6() const { return newest_is_ipv6_; }

  const UdConfig& config() const { return config_; }
  const UdCounters& counters() const { return counters_; }
  void reset_counters() { counters_ = UdCounters(); }

  void on_packet(TimePs now, const roce::ParsedPacket& packet) override;
  PacketPtr pull(TimePs now) override;
  PulledPacket last_pulled() const override { return last_pulled_; }
  int data_class() const override { return config_.data_class; }
  bool may_have_control() const override { return false; }
  bool may_have_data() const override { return has_next(); }
  // Completions wait for it, because their handlers may post; and copies to members of the port.
  TimePs next_deadline() const override { return due_ps_; }
  void on_deadline(TimePs now) override;

 private:
  struct Outstanding : UdRequest {
    uint64_t end_sequence = 0;
    uint64_t retransmitted_packets = 0;  // none
  };

  bool stays(const UdRequest& request) const;
  PacketPtr build_next(const Outstanding& request);
  bool has_next() const { return error_ == CompletionStatus::kSuccess && next_sequence_ != end_sequence_; }
  UdGroups& own_groups() const;
  const roce::IpAddress& source_for(const AddressHandle& to) const;
  roce::RoceHeaders headers_of(const UdRequest& request) const;
  void loop(const Packet& packet);
  void deliver_loops(TimePs now);
  void deliver_completions(TimePs now);
  void fail(TimePs now, CompletionStatus status, CompletionStatus first_receive);
  bool place(const roce::ParsedPacket& packet);

  UdConfig config_;
  PacketPool& pool_;
  std::shared_ptr<UdGroups> groups_;
  UdCounters counters_;
  RequestCompletions completions_;
  PostedReceives receives_;
  PostedRequests<Outstanding> requests_;
  uint64_t end_sequence_ = 0;
  uint64_t next_sequence_ = 0;
  TimePs due_ps_ = kNever;
  RingBuffer<PacketPtr> loops_;   // datagrams to the port itself, and copies to groups there
  std::vector<uint8_t> payload_;  // of the packet that is built, from foreign memory
  PulledPacket last_pulled_;
  CompletionStatus error_ = CompletionStatus::kSuccess;
  bool blocks_own_copies_ = false;
  bool newest_is_ipv6_ = false;
};

}  // namespace weft
