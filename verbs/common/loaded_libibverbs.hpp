// The copies of libibverbs that a process has loaded: the distribution's, and those that Python wheels bring
// along under names with a hash (auditwheel), such as libibverbs-1de1263b.so.1.14.48.0.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <cstring>

namespace weft::verbs {

constexpr int kMostCopies = 8;
struct LoadedLibibverbs {
  void* handles[kMostCopies];
  int count;
};

inline LoadedLibibverbs loaded_libibverbs() {
  struct Names {
    const char* paths[kMostCopies];
    int count;
  } names{};
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* into) {
        auto& found = *static_cast<Names*>(into);
        const char* slash = std::strrchr(object->dlpi_name, '/');
        const char* name = slash == nullptr ? object->dlpi_name : slash + 1;
        constexpr size_t length = sizeof "libibverbs" - 1;
        const bool is_copy =
            std::strncmp(name, "libibverbs", length) == 0 && (name[length] == '.' || name[length] == '-');
        if (is_copy && found.count < kMostCopies) found.paths[found.count++] = object->dlpi_name;
        return 0;
      },
      &names);
  LoadedLibibverbs loaded{};
  for (int i = 0; i < names.count; ++i)
    if (void* handle = dlopen(names.paths[i], RTLD_NOW | RTLD_NOLOAD); handle != nullptr)
      loaded.handles[loaded.count++] = handle;
  return loaded;
}

}  // namespace weft::verbs
