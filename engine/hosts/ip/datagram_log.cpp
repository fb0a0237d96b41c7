#include "hosts/ip/datagram_log.hpp"

namespace weft {

DatagramLog::DatagramLog(IpStack& stack, uint16_t port, size_t most_datagrams)
    : stack_(stack), port_(stack.bind_udp(port, *this)), most_datagrams_(most_datagrams) {}

void DatagramLog::on_datagram(TimePs now, const Datagram& datagram) {
  if (entries_.size() >= most_datagrams_) {
    ++not_kept_;
    return;
  }
  bytes_.insert(bytes_.end(), datagram.payload.begin(), datagram.payload.end());
  entries_.push_back({now, bytes_.size()});
}

}  // namespace weft
