#include "pcap_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace weft {

namespace {

constexpr uint32_t kNanosecondMagic = 0xa1b23c4d;
constexpr uint32_t kLinkTypeEthernet = 1;

struct FileHeader {
  uint32_t magic = kNanosecondMagic;
  uint16_t version_major = 2;
  uint16_t version_minor = 4;
  int32_t zone_offset = 0;
  uint32_t timestamp_accuracy = 0;
  uint32_t snap_length = 0;
  uint32_t link_type = kLinkTypeEthernet;
};

struct RecordHeader {
  uint32_t seconds;
  uint32_t nanoseconds;
  uint32_t captured_bytes;
  uint32_t original_bytes;
};

}  // namespace

PcapWriter::PcapWriter(const std::string& path, uint32_t snap_length, int64_t origin_ns)
    : path_(path), snap_length_(snap_length), origin_ns_(origin_ns) {
  file_ = std::fopen(path.c_str(), "wb");
  FileHeader header;
  header.snap_length = snap_length;
  if (file_ == nullptr || std::fwrite(&header, sizeof header, 1, file_) != 1 || std::fflush(file_) != 0) {
    const int error = errno;
    close();
    throw std::system_error(error, std::generic_category(), "capture file '" + path + "'");
  }
}

PcapWriter::~PcapWriter() { close(); }

void PcapWriter::write(TimePs time_ps, std::span<const uint8_t> frame) {
  const int64_t nanoseconds = origin_ns_ + std::max<TimePs>(time_ps, 0) / kPsPerNs;
  const RecordHeader header{.seconds = static_cast<uint32_t>(nanoseconds / 1'000'000'000),
                            .nanoseconds = static_cast<uint32_t>(nanoseconds % 1'000'000'000),
                            .captured_bytes = std::min(static_cast<uint32_t>(frame.size()), snap_length_),
                            .original_bytes = static_cast<uint32_t>(frame.size())};
  std::lock_guard guard(mutex_);
  if (file_ == nullptr || std::fwrite(&header, sizeof header, 1, file_) != 1 ||
      std::fwrite(frame.data(), 1, header.captured_bytes, file_) != header.captured_bytes) {
    ++packets_failed_;
    return;
  }
  ++packets_written_;
}

void PcapWriter::flush() {
  std::lock_guard guard(mutex_);
  if (file_ != nullptr) std::fflush(file_);
}

void PcapWriter::close() {
  std::lock_guard guard(mutex_);
  if (file_ != nullptr) std::fclose(file_);
  file_ = nullptr;
}

uint64_t PcapWriter::packets_written() const {
  std::lock_guard guard(mutex_);
  return packets_written_;
}

uint64_t PcapWriter::packets_failed() const {
  std::lock_guard guard(mutex_);
  return packets_failed_;
}

}  // namespace weft
