// Routes of the network namespace that this process is in: which port of a device leads to a host.
#pragma once

#include <cstdint>
#include <vector>

#include "verbs/cm/ucma.hpp"

namespace weft::cm {

class KernelRoutes {
 public:
  explicit KernelRoutes(std::vector<DevicePort> ports) : ports_(std::move(ports)) {}

  // As Surroundings::route(): asks the kernel which source address it would take, and sends nothing.
  Surroundings::Route route(const Gid& destination, uint8_t port) const;

 private:
  std::vector<DevicePort> ports_;
};

}  // namespace weft::cm
