// The table of operations that libibverbs takes from a provider, by name.
#pragma once

#include <infiniband/verbs.h>

namespace weft::verbs {

struct NamedOperation {
  const char* name;
  void* function;
};

// Hands the operations over to libibverbs for this context; those it does not name stay unsupported. False if
// the library's table is not one that is known: then nothing has changed.
bool set_operations(verbs_context* context, const NamedOperation* operations, int count);

}  // namespace weft::verbs
