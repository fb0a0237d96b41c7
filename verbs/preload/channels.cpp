#include "common/channels.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {

std::atomic<const weft::verbs::ChannelMaker*> maker;

ibv_comp_channel* by_library(ibv_context* context) {
  using Create = ibv_comp_channel* (*)(ibv_context*);
  void* libibverbs = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD);
  auto* create = reinterpret_cast<Create>(dlsym(libibverbs, "ibv_create_comp_channel"));
  return create(context);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void weft_set_channel_maker(
    const weft::verbs::ChannelMaker* given) {
  maker.store(given);
}

extern "C" __attribute__((visibility("default"))) ibv_comp_channel* ibv_create_comp_channel(
    ibv_context* context) {
  const weft::verbs::ChannelMaker* known = maker.load();
  if (known == nullptr || context->ops.poll_cq != known->poll_cq) return by_library(context);
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
