// The next definition of a function that a preloaded library defines, too: the C library's, or that of
// another preloaded library.
#pragma once

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

#include <atomic>

#define WEFT_EXPORTED extern "C" __attribute__((visibility("default")))

namespace weft::verbs {

template <class Function>
class Next {
 public:
  // `version`: of the symbol, where the C library has several.
  constexpr explicit Next(const char* name, const char* version = nullptr) : name_(name), version_(version) {}
  Function* get() {
    Function* found = found_.load(std::memory_order_relaxed);
    if (found == nullptr) {
      found = reinterpret_cast<Function*>(version_ == nullptr ? dlsym(RTLD_NEXT, name_)
                                                              : dlvsym(RTLD_NEXT, name_, version_));
      if (found == nullptr && version_ != nullptr)
        found = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
      found_.store(found, std::memory_order_relaxed);
    }
    return found;
  }
  template <class... Arguments>
  auto operator()(Arguments... arguments) {
    return get()(arguments...);
  }

 private:
  const char* name_;
  const char* version_;
  std::atomic<Function*> found_{nullptr};
};

}  // namespace weft::verbs
