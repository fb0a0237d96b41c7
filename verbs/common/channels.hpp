// Completion channels. libibverbs makes them itself, by a command to the kernel, and asks no provider; so the
// preloaded library stands in its way and asks the provider that has registered here.
#pragma once

#include <infiniband/verbs.h>

namespace weft::verbs {

struct ChannelMaker {
  // A context is the provider's if it polls so.
  int (*poll_cq)(ibv_cq*, int, ibv_wc*);
  // The descriptor of a new channel, -1 with errno otherwise.
  int (*create_channel)(ibv_context*);
  // It is about to be closed.
  void (*destroy_channel)(ibv_context*, int descriptor);
};

// The preloaded library's function, by name: void (const ChannelMaker*), for a structure that stays.
constexpr const char* kSetChannelMaker = "weft_set_channel_maker";

}  // namespace weft::verbs
