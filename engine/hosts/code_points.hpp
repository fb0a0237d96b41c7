// Code points of queue pairs of MRC and UET in a class.
#pragma once

#include "hosts/rc_config.hpp"
#include "packets/roce_formats.hpp"

namespace weft {

// A configuration of what travels in common.data_class: in the acknowledgements' class all of it has their
// code point, whether it is sent again or not.
template <class Config>
Config in_class_of(const RcConfig& common, Config config) {
  if (common.data_class == roce::kControlClass)
    config.data_dscp = config.retransmission_dscp = config.control_dscp;
  return config;
}

}  // namespace weft
