// The objects behind the pointers of mrc.h, each around that of libibverbs.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <atomic>
#include <cstdint>

#include "common/mrc.hpp"
#include "mrc.h"

struct mrc_context {
  ibv_context* verbs;
  const weft::verbs::MrcProvider* provider;
  bool has_event_states;  // whether its program's mrc_ctl_ev_event has a state
  pthread_mutex_t mutex;
  uint32_t objects;     // made of it
  uint32_t hints;       // of them
  mrc_cq* first_queue;  // of completions
};

struct mrc_comp_channel {
  mrc_context* context;
  ibv_comp_channel* verbs;
};

struct mrc_cq {
  mrc_context* context;
  ibv_cq* verbs;  // null: of EV events
  void* user;
  mrc_cq* next;
};

struct mrc_qp_hint {
  mrc_context* context;
  mrc_qp_hint_attr attributes;
  uint32_t users;
};

struct mrc_qp {
  mrc_context* context;
  ibv_qp* verbs;
  mrc_qp_init_attr initial;
  mrc_qp_hint* hint;
};

namespace weft::mrc {

// As functions of mrc.h fail: with an errno as result, with -1, or with a null pointer.
inline int error(int number) {
  errno = number;
  return number;
}
inline int minus_one(int number) {
  if (number == 0) return 0;
  errno = number;
  return -1;
}
inline std::nullptr_t null(int number) {
  errno = number;
  return nullptr;
}

// The provider of a device if it is Weft's, otherwise null.
const verbs::MrcProvider* provider_of(const ibv_context* context);

template <class Request>
int ask(ibv_context* verbs, const verbs::MrcProvider& provider, const typename Request::Question& question,
        typename Request::Answer& answer) {
  return provider.ask(verbs, static_cast<uint32_t>(Request::kOperation), &question, sizeof question, &answer,
                      sizeof answer);
}
template <class Request>
int ask(mrc_context& context, const typename Request::Question& question, typename Request::Answer& answer) {
  return ask<Request>(context.verbs, *context.provider, question, answer);
}

class Lock {
 public:
  explicit Lock(mrc_context& context) : mutex_(context.mutex) { pthread_mutex_lock(&mutex_); }
  ~Lock() { pthread_mutex_unlock(&mutex_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  pthread_mutex_t& mutex_;
};

// A new object of a context, zeros but for that; null without memory.
template <class Object>
Object* made(mrc_context& context) {
  auto* object = static_cast<Object*>(calloc(1, sizeof(Object)));
  if (object == nullptr) return null(ENOMEM);
  object->context = &context;
  const Lock lock(context);
  ++context.objects;
  return object;
}
template <class Object>
void destroy(Object* object) {
  mrc_context& context = *object->context;
  free(object);
  const Lock lock(context);
  --context.objects;
}

mrc_cq* add_queue(mrc_context& context, ibv_cq* verbs, void* user);

}  // namespace weft::mrc
