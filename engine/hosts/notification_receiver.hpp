// Takes switches' notifications of queues from what arrives at a NIC.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "hosts/nic.hpp"
#include "hosts/switch_notification.hpp"
#include "packets/roce_formats.hpp"

namespace weft {

// Stands before the NIC's receiver of what is not RoCEv2's, so that a NIC without one pays nothing.
class NotificationReceiver final : public NonRoceReceiver {
 public:
  // The NIC outlives it.
  explicit NotificationReceiver(Nic& nic);
  ~NotificationReceiver() override;
  NotificationReceiver(const NotificationReceiver&) = delete;
  NotificationReceiver& operator=(const NotificationReceiver&) = delete;

  void receive_non_roce(int port, PacketPtr packet) override;

 private:
  Nic& nic_;
  NonRoceReceiver* next_;  // null: what is no notification is dropped
};

// What a frame's sender and destination are, and what it notifies of; none of another frame.
struct ReceivedNotification {
  roce::IpAddress source;
  roce::IpAddress destination;
  switch_notification::Header header;
};
std::optional<ReceivedNotification> parse_switch_notification(std::span<const uint8_t> frame);

}  // namespace weft
