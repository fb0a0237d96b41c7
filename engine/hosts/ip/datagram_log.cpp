#include "hosts/ip/datagram_log.hpp"

namespace weft {

DatagramLog::DatagramLog(IpStack& stack, uint16_t port, size_t most_datagrams, size_t most_bytes)
    : stack_(stack),
      port_(stack.bind_udp(port, *this)),
      most_datagrams_(most_datagrams),
      most_bytes_(most_bytes) {}

void DatagramLog::on_datagram(TimePs now, const Datagram& datagram) {
  const bool has_room =
      entries_.size() < most_datagrams_ && datagram.payload.size() <= most_bytes_ - bytes_.size();
  if (not_kept_ > 0 || !has_room) {
    ++not_kept_;
    return;
  }
  bytes_.insert(bytes_.end(), datagram.payload.begin(), datagram.payload.end());
  entries_.push_back({now, bytes_.size()});
}

}  // namespace weft
