// The connection to the NIC's process.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <cstring>

#include "verbs/protocol.hpp"

namespace weft::verbs {

class Connection {
 public:
  // To the socket that the environment names. Result: 0 or an errno.
  int open();
  void close();

  // Asks and waits for the answer. Result: 0 or an errno. `descriptors` of the answer go there, at most
  // kMaxDescriptors; the others are closed. Threads take turns.
  template <class Request>
  int ask(const typename Request::Question& question, typename Request::Answer& answer,
          int* descriptors = nullptr) {
    static_assert(sizeof question + sizeof(QuestionHeader) <= kMaxRequestBytes);
    return ask(static_cast<uint32_t>(Request::kOperation), &question, sizeof question, &answer, sizeof answer,
               descriptors);
  }
  int ask(uint32_t operation, const void* question, size_t question_bytes, void* answer, size_t answer_bytes,
          int* descriptors);

 private:
  int socket_ = -1;
  pthread_mutex_t turn_ = PTHREAD_MUTEX_INITIALIZER;
};

constexpr const char* kSocketVariable = "WEFT_VERBS_SOCKET";

}  // namespace weft::verbs
