#include "hosts/scale_up_sockets.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace weft {

namespace {

constexpr int kReadyAtOnce = 16;
// Of one peer in one poll, so that events are served in between.
constexpr int kRecordsAtOnce = 64;

bool would_block(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

void make_private_and_nonblocking(int descriptor) {
  const int flags = fcntl(descriptor, F_GETFL);
  int type = 0;
  socklen_t size = sizeof type;
  if (flags < 0 || getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
    throw std::system_error(errno, std::generic_category(), "scale-up socket " + std::to_string(descriptor));
  if (type != SOCK_STREAM)
    throw std::invalid_argument("scale-up socket " + std::to_string(descriptor) + " is no stream socket");
  if (fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) != 0 || fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category(), "fcntl");
}

}  // namespace

ScaleUpSockets::ScaleUpSockets(ScaleUpDomain& domain, uint32_t own_port,
                               const std::map<uint32_t, int>& sockets)
    : domain_(domain), own_port_(own_port) {
  static_assert(std::is_trivially_copyable_v<Record>);
  if (!domain.engine().is_real())
    throw std::logic_error("scale-up links between processes need an engine with a real clock");
  try {
    open(domain.port_count(), sockets);
    domain.set_wire(own_port, *this);
    domain.engine().add_pollable(this);
  } catch (...) {
    release();
    throw;
  }
}

void ScaleUpSockets::open(uint32_t port_count, const std::map<uint32_t, int>& sockets) {
  if (own_port_ >= port_count || sockets.contains(own_port_) || sockets.size() + 1 != port_count ||
      (!sockets.empty() && sockets.rbegin()->first >= port_count))
    throw std::invalid_argument("scale-up sockets of port " + std::to_string(own_port_) +
                                " (valid: one to each other of " + std::to_string(port_count) + " ports)");
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (epoll_fd_ < 0) throw std::system_error(errno, std::generic_category(), "epoll_create1");
  for (const auto& [port, descriptor] : sockets) {
    make_private_and_nonblocking(descriptor);
    Peer& peer = peers_[port];
    peer.port = port;
    peer.descriptor = descriptor;
    watch(EPOLL_CTL_ADD, peer, EPOLLIN);
  }
}

ScaleUpSockets::~ScaleUpSockets() {
  domain_.engine().remove_pollable(this);
  release();
}

void ScaleUpSockets::release() {
  for (auto& [port, peer] : peers_)
    if (peer.descriptor >= 0) ::close(peer.descriptor);
  peers_.clear();
  if (epoll_fd_ >= 0) ::close(epoll_fd_);
  epoll_fd_ = -1;
}

void ScaleUpSockets::watch(int operation, Peer& peer, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u32 = peer.port;
  if (epoll_ctl(epoll_fd_, operation, peer.descriptor, &event) != 0)
    throw std::system_error(errno, std::generic_category(), "epoll_ctl");
}

// Its process has ended, and with it what it was to take part in.
void ScaleUpSockets::lose(Peer& peer) {
  ::close(peer.descriptor);
  peer.descriptor = -1;
  peer.unsent.clear();
}

// --- out

void ScaleUpSockets::carry(TimePs due_ps, const ScaleUpMessage& message) {
  if (message.length_bytes > kMaxMessageBytes)
    throw std::length_error("a message of " + std::to_string(message.length_bytes) +
                            " B between ranks of a host (valid: at most " + std::to_string(kMaxMessageBytes) +
                            ")");
  if (peers_.at(message.destination).descriptor < 0) {
    domain_.finish(message, std::nullopt);
    return;
  }
  Record record;
  record.has_data = message.data != nullptr;
  record.due_ps = due_ps;
  record.message = message;
  send(message.destination, record, message.data, record.has_data ? message.length_bytes : 0);
}

void ScaleUpSockets::answer(const ScaleUpMessage& message, ScaleUpOutcome outcome) {
  Record record;
  record.kind = Kind::kAnswer;
  record.is_answered = outcome.has_value();
  record.status = outcome.value_or(CompletionStatus::kSuccess);
  record.message = message;
  send(message.source, record, nullptr, 0);
}

void ScaleUpSockets::send(uint32_t port, const Record& record, const uint8_t* data, size_t size_bytes) {
  Peer& peer = peers_.at(port);
  if (peer.descriptor < 0) return;
  std::vector<uint8_t> bytes(sizeof record + size_bytes);
  std::memcpy(bytes.data(), &record, sizeof record);
  if (size_bytes > 0) std::memcpy(bytes.data() + sizeof record, data, size_bytes);
  const bool waits = !peer.unsent.empty();
  peer.unsent.push_back(std::move(bytes));
  if (waits) return;
  send_waiting(peer);
  if (!peer.unsent.empty()) watch(EPOLL_CTL_MOD, peer, EPOLLIN | EPOLLOUT);
}

void ScaleUpSockets::send_waiting(Peer& peer) {
  while (!peer.unsent.empty()) {
    const std::vector<uint8_t>& first = peer.unsent.front();
    const ssize_t sent = ::send(peer.descriptor, first.data() + peer.sent_of_first,
                                first.size() - peer.sent_of_first, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (!would_block(errno)) lose(peer);
      return;
    }
    peer.sent_of_first += static_cast<size_t>(sent);
    if (peer.sent_of_first < first.size()) continue;
    peer.unsent.pop_front();
    peer.sent_of_first = 0;
  }
}

// --- in

TimePs ScaleUpSockets::poll() {
  std::array<epoll_event, kReadyAtOnce> ready{};
  const int count = epoll_wait(epoll_fd_, ready.data(), kReadyAtOnce, 0);
  bool all_taken = count < kReadyAtOnce;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<size_t>(i)];
    Peer& peer = peers_.at(event.data.u32);
    if ((event.events & EPOLLOUT) != 0) {
      send_waiting(peer);
      if (peer.descriptor >= 0 && peer.unsent.empty()) watch(EPOLL_CTL_MOD, peer, EPOLLIN);
    }
    if (peer.descriptor >= 0 && (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0)
      all_taken &= receive(peer);
  }
  return all_taken ? kNever : domain_.engine().now();
}

// Result: whether nothing is left.
bool ScaleUpSockets::receive(Peer& peer) {
  for (int taken = 0; taken < kRecordsAtOnce; ++taken) {
    auto* record = reinterpret_cast<uint8_t*>(&peer.record);
    if (!receive_into(peer, record, sizeof peer.record, peer.record_bytes)) return true;
    const uint64_t length_bytes = peer.record.has_data ? peer.record.message.length_bytes : 0;
    if (length_bytes > kMaxMessageBytes)
      throw std::runtime_error("scale-up link to port " + std::to_string(peer.port) + ": a message of " +
                               std::to_string(length_bytes) + " B");
    if (peer.data == nullptr && length_bytes > 0)
      peer.data = std::make_unique_for_overwrite<uint8_t[]>(length_bytes);
    if (!receive_into(peer, peer.data.get(), length_bytes, peer.data_bytes)) return true;
    take_record(peer);
  }
  return false;
}

// Result: whether all that is wanted is there.
bool ScaleUpSockets::receive_into(Peer& peer, uint8_t* target, size_t wanted, size_t& have) {
  while (have < wanted) {
    const ssize_t got = ::recv(peer.descriptor, target + have, wanted - have, MSG_DONTWAIT);
    if (got > 0) {
      have += static_cast<size_t>(got);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got == 0 || !would_block(errno)) lose(peer);
    return false;
  }
  return true;
}

void ScaleUpSockets::take_record(Peer& peer) {
  const Record record = peer.record;
  peer.record_bytes = peer.data_bytes = 0;
  std::unique_ptr<uint8_t[]> data = std::move(peer.data);
  if (record.message.kind >= ScaleUpKind::kCount)
    throw std::runtime_error("scale-up link to port " + std::to_string(peer.port) + ": a record of kind " +
                             std::to_string(static_cast<int>(record.message.kind)));
  const bool is_answer = record.kind == Kind::kAnswer;
  const uint32_t from = is_answer ? record.message.destination : record.message.source;
  const uint32_t to = is_answer ? record.message.source : record.message.destination;
  if (from != peer.port || to != own_port_)
    throw std::runtime_error("scale-up link to port " + std::to_string(peer.port) + ": a record from port " +
                             std::to_string(from) + " to port " + std::to_string(to));
  if (is_answer)
    domain_.finish(record.message, record.is_answered ? ScaleUpOutcome(record.status) : ScaleUpOutcome());
  else
    domain_.arrive(record.due_ps, record.message, std::move(data));
}

}  // namespace weft
