// Packets and bytes of an operation, as the ranks' transport counts them.
#pragma once

#include "hosts/rc_config.hpp"
#include "hosts/scale_up.hpp"

namespace weft {

struct OperationTraffic {
  RcCounters network;
  ScaleUpCounters scale_up;

  OperationTraffic& operator+=(const OperationTraffic& other) {
    network += other.network;
    add_statistics(scale_up, other.scale_up);
    return *this;
  }
  OperationTraffic& operator-=(const OperationTraffic& other) {
    RcCounters::each_statistic(
        [&](const char*, auto member, const char*) { network.*member -= other.network.*member; });
    ScaleUpCounters::each_statistic(
        [&](const char*, auto member, const char*) { scale_up.*member -= other.scale_up.*member; });
    return *this;
  }
};

}  // namespace weft
