#include "connection.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "common/unix_socket.hpp"

namespace weft::verbs {

int Connection::open() {
  const char* path = std::getenv(kSocketVariable);
  if (path == nullptr) return ENODEV;
  socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return errno;
  const int error = connect_to(socket_, path);
  if (error != 0) close();
  return error;
}

void Connection::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

int Connection::ask(uint32_t operation, const void* question, size_t question_bytes, void* answer,
                    size_t answer_bytes, int* descriptors) {
  unsigned char message[kMaxRequestBytes];
  const QuestionHeader header{operation, static_cast<uint32_t>(sizeof(QuestionHeader) + question_bytes)};
  std::memcpy(message, &header, sizeof header);
  std::memcpy(message + sizeof header, question, question_bytes);

  pthread_mutex_lock(&turn_);
  ssize_t got = send(socket_, message, header.length_bytes, MSG_NOSIGNAL);
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxDescriptors)];
  iovec part{message, sizeof message};
  msghdr received{};
  received.msg_iov = &part;
  received.msg_iovlen = 1;
  received.msg_control = control;
  received.msg_controllen = sizeof control;
  if (got >= 0) do
      got = recvmsg(socket_, &received, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
  pthread_mutex_unlock(&turn_);

  // A NIC that has gone: the lab has ended.
  if (got < static_cast<ssize_t>(sizeof(AnswerHeader))) return EIO;
  int taken = 0;
  for (cmsghdr* each = CMSG_FIRSTHDR(&received); each != nullptr; each = CMSG_NXTHDR(&received, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (each->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(each) + i * sizeof(int), sizeof descriptor);
      if (descriptors != nullptr && taken < static_cast<int>(kMaxDescriptors))
        descriptors[taken++] = descriptor;
      else
        ::close(descriptor);
    }
  }
  AnswerHeader result{};
  std::memcpy(&result, message, sizeof result);
  if (result.error != 0) return result.error;
  if (got != static_cast<ssize_t>(sizeof result + answer_bytes)) return EPROTO;
  std::memcpy(answer, message + sizeof result, answer_bytes);
  return 0;
}

}  // namespace weft::verbs
