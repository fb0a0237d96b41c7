// Python buffers that native code reads and writes while Python goes on.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <stdexcept>

namespace weft {

// A contiguous Python buffer. The last reference may go on the engine's thread.
class PythonBuffer {
 public:
  PythonBuffer(const pybind11::buffer& buffer, bool writable) : info_(buffer.request(writable)) {
    pybind11::ssize_t stride = info_.itemsize;
    for (pybind11::ssize_t axis = info_.ndim; axis-- > 0; stride *= info_.shape[static_cast<size_t>(axis)]) {
      const auto at = static_cast<size_t>(axis);
      if (info_.shape[at] > 1 && info_.strides[at] != stride) {
        throw std::invalid_argument("buffer is not C-contiguous, so it can't be registered without a copy");
      }
    }
  }
  ~PythonBuffer() {
    pybind11::gil_scoped_acquire acquire;
    info_ = pybind11::buffer_info();
  }
  PythonBuffer(const PythonBuffer&) = delete;
  PythonBuffer& operator=(const PythonBuffer&) = delete;

  uint8_t* data() const { return static_cast<uint8_t*>(info_.ptr); }
  uint64_t size_bytes() const { return static_cast<uint64_t>(info_.size * info_.itemsize); }

 private:
  pybind11::buffer_info info_;
};

}  // namespace weft
