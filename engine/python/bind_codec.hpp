// RoCEv2 headers as Python values.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "packets/roce_codec.hpp"

namespace weft {

// "02:00:00:00:00:01". Throws std::invalid_argument for anything else.
roce::MacAddress parse_mac(const std::string& text);
// "10.0.0.1" or "fd00::1". Throws std::invalid_argument for anything else.
roce::IpAddress parse_ip(const std::string& text);
std::string format_mac(const roce::MacAddress& mac);
std::string format_ip(const roce::IpAddress& address);

// Throws std::invalid_argument naming the field that is unknown or out of range.
roce::IntStack int_stack_of(const pybind11::dict& fields);
pybind11::dict telemetry_dict(const roce::IntStack& stack);

// build_packet(), parse_packet(), icrc(), crc32()
void bind_codec(pybind11::module_& m);

}  // namespace weft
