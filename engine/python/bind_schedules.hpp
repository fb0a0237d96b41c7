// Names of data types and operations, as Python gives them.
#pragma once

#include <string>

#include "collectives/lane_encoding.hpp"
#include "collectives/reduction.hpp"

namespace weft {

// They throw std::invalid_argument, naming the valid ones.
DataType parse_data_type(const std::string& text);
LaneType parse_lane_type(const std::string& text);
ReduceOperation parse_operation(const std::string& text);

}  // namespace weft
