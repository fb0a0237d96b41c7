#include "common/channels.hpp"

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "common/loaded_libibverbs.hpp"

namespace {

std::atomic<const weft::verbs::ChannelMaker*> maker;

// All copies do the same with a channel. One is there: it has made the channel's context.
template <class Function>
Function* of_library(const char* name) {
  const weft::verbs::LoadedLibibverbs loaded = weft::verbs::loaded_libibverbs();
  return reinterpret_cast<Function*>(dlsym(loaded.handles[0], name));
}

// Null for contexts of other providers.
const weft::verbs::ChannelMaker* maker_for(ibv_context* context) {
  const weft::verbs::ChannelMaker* known = maker.load();
  return known != nullptr && context->ops.poll_cq == known->poll_cq ? known : nullptr;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void weft_set_channel_maker(
    const weft::verbs::ChannelMaker* given) {
  maker.store(given);
}

extern "C" __attribute__((visibility("default"))) ibv_comp_channel* ibv_create_comp_channel(
    ibv_context* context) {
  const weft::verbs::ChannelMaker* known = maker_for(context);
  if (known == nullptr)
    return of_library<ibv_comp_channel*(ibv_context*)>("ibv_create_comp_channel")(context);
  const int descriptor = known->create_channel(context);
  if (descriptor < 0) return nullptr;
  // As libibverbs' ibv_destroy_comp_channel() frees it.
  auto* channel = static_cast<ibv_comp_channel*>(std::calloc(1, sizeof(ibv_comp_channel)));
  if (channel == nullptr) {
    errno = ENOMEM;
    return nullptr;
  }
  channel->context = context;
  channel->fd = descriptor;
  return channel;
}

extern "C" __attribute__((visibility("default"))) int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  const weft::verbs::ChannelMaker* known = maker_for(channel->context);
  // The library refuses to destroy one that is in use.
  if (known != nullptr && channel->refcnt == 0) known->destroy_channel(channel->context, channel->fd);
  return of_library<int(ibv_comp_channel*)>("ibv_destroy_comp_channel")(channel);
}
