// A shared receive queue as Python holds it.
#pragma once

#include <memory>

#include "hosts/nic.hpp"
#include "hosts/shared_receives.hpp"

namespace weft {

struct PythonSharedReceives {
  explicit PythonSharedReceives(Nic& nic) : engine(nic.engine()) {}
  Engine& engine;
  std::shared_ptr<SharedReceives> receives = std::make_shared<SharedReceives>();
};

inline std::shared_ptr<SharedReceives> receives_of(const std::shared_ptr<PythonSharedReceives>& shared) {
  return shared == nullptr ? nullptr : shared->receives;
}

}  // namespace weft
