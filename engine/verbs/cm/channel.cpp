#include "verbs/cm/channel.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace weft::cm {

namespace {

// Most messages of one connection that are served at once, so that others get their turn.
constexpr int kMostAtOnce = 64;

template <class Part>
std::span<const uint8_t> bytes_of_part(const Part& part) {
  return {reinterpret_cast<const uint8_t*>(&part), sizeof part};
}

// A descriptor that has come with a message, closed at the end.
class ReceivedDescriptor {
 public:
  explicit ReceivedDescriptor(const msghdr& message) {
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each != nullptr;
         each = CMSG_NXTHDR(const_cast<msghdr*>(&message), each)) {
      if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
      const size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      for (size_t at = 0; at < count; ++at) {
        int descriptor;
        std::memcpy(&descriptor, CMSG_DATA(each) + at * sizeof(int), sizeof descriptor);
        if (descriptor_ < 0) {
          descriptor_ = descriptor;
        } else {
          ::close(descriptor);
        }
      }
    }
  }
  ReceivedDescriptor(const ReceivedDescriptor&) = delete;
  ~ReceivedDescriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

}  // namespace

Channels::Channels(Ucma& ucma, uint64_t seed) : ucma_(ucma), random_(seed, "channels") {}

Channels::~Channels() {
  while (!channels_.empty()) remove(channels_.begin()->first);
}

bool Channels::add(int socket, bool hello_is_read) {
  Channel& channel = channels_[socket];
  channel.client = ucma_.open_client();
  do {
    channel.name = random_.next_u64();
  } while (channel.name == 0 || clients_.contains(channel.name));
  clients_[channel.name] = channel.client;
  sockets_[channel.client] = socket;
  if (!hello_is_read || greet(socket, channel, bytes_of_part(Hello{}))) return true;
  remove(socket);
  return false;
}

void Channels::remove(int socket) {
  const auto found = channels_.find(socket);
  if (found == channels_.end()) return;
  const Channel channel = found->second;
  channels_.erase(found);
  clients_.erase(channel.name);
  sockets_.erase(channel.client);
  ucma_.close_client(channel.client);
  ::close(socket);
}

void Channels::events_wait(uint32_t client) {
  const auto socket = sockets_.find(client);
  if (socket == sockets_.end()) return;
  // A program has one byte more than it reads at most, so that this never waits for room.
  const uint8_t byte = 1;
  (void)::send(socket->second, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool Channels::serve(int socket) {
  const auto found = channels_.find(socket);
  if (found == channels_.end()) return false;
  bool is_over = false;
  for (int served = 0; served < kMostAtOnce && !is_over; ++served) {
    std::array<uint8_t, sizeof(CommandHeader) + kMostCommandBytes + kMostOptionBytes> buffer;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control;
    iovec part{buffer.data(), buffer.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t bytes = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    const ReceivedDescriptor reply(message);
    const std::span<const uint8_t> received(buffer.data(), static_cast<size_t>(std::max<ssize_t>(bytes, 0)));
    Channel& channel = found->second;
    is_over = bytes <= 0 || (message.msg_flags & MSG_TRUNC) != 0 ||
              !(channel.has_said_hello ? carry_out(channel, received, reply.get())
                                       : greet(socket, channel, received));
  }
  if (is_over) remove(socket);
  return !is_over;
}

bool Channels::greet(int socket, Channel& channel, std::span<const uint8_t> message) {
  Hello hello;
  if (message.size() != sizeof hello) return false;
  std::memcpy(&hello, message.data(), sizeof hello);
  HelloAnswer answer;
  answer.error = hello.magic == kHelloMagic ? 0 : EPROTO;
  answer.channel = answer.error == 0 ? channel.name : 0;
  channel.has_said_hello = answer.error == 0;
  return ::send(socket, &answer, sizeof answer, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof answer &&
         channel.has_said_hello;
}

bool Channels::carry_out(Channel& channel, std::span<const uint8_t> message, int reply) {
  CommandHeader header;
  if (message.size() < sizeof header || reply < 0) return false;
  std::memcpy(&header, message.data(), sizeof header);
  if (header.command_bytes > kMostCommandBytes || header.option_bytes > kMostOptionBytes ||
      sizeof header + header.command_bytes + header.option_bytes != message.size())
    return false;
  std::optional<uint32_t> from;
  if (const auto named = clients_.find(header.channel); named != clients_.end()) from = named->second;
  const Ucma::Answer done =
      ucma_.command(channel.client, message.subspan(sizeof header, header.command_bytes),
                    message.last(header.option_bytes), from);
  CommandAnswer answer;
  answer.error = static_cast<uint32_t>(done.error);
  answer.response_bytes = static_cast<uint32_t>(done.response.size());
  answer.is_drained = done.is_drained;
  answer.is_source_drained = done.is_source_drained;
  std::vector<uint8_t> bytes(sizeof answer);
  std::memcpy(bytes.data(), &answer, sizeof answer);
  bytes.insert(bytes.end(), done.response.begin(), done.response.end());
  // Whoever does not read its answer misses it.
  (void)::send(reply, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return true;
}

}  // namespace weft::cm
