#include "links/pcap_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <vector>

#include "links/mac_control.hpp"
#include "packets/frame_shims.hpp"
#include "packets/roce_formats.hpp"

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

// A lab writes as root to a folder that may be somebody else's, whose links must not lead elsewhere.
std::FILE* open_without_link(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                                S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
  if (descriptor < 0) return nullptr;
  std::FILE* file = ::fdopen(descriptor, "wb");
  if (file == nullptr) ::close(descriptor);
  return file;
}

}  // namespace

PcapWriter::PcapWriter(const std::string& path, uint32_t snap_length, int64_t origin_ns,
                       const CaptureInterface& interface, CaptureShims shims)
    : path_(path),
      snap_length_(snap_length),
      origin_ns_(origin_ns),
      is_pcapng_(path.ends_with(".pcapng")),
      shims_(shims) {
  file_ = open_without_link(path);
  FileHeader header;
  header.snap_length = snap_length;
  std::vector<uint8_t> pcapng_header;
  if (is_pcapng_) pcapng_header = pcapng::file_header(interface, snap_length);
  if (file_ == nullptr ||
      !(is_pcapng_ ? put(pcapng_header.data(), pcapng_header.size()) : put(&header, sizeof header)) ||
      std::fflush(file_) != 0) {
    const int error = errno;
    close_file();
    throw std::system_error(error, std::generic_category(), "capture file '" + path + "'");
  }
}

PcapWriter::~PcapWriter() { close_file(); }

void PcapWriter::write(TimePs time_ps, std::span<const uint8_t> frame, CaptureDirection direction,
                       size_t zero_bytes) {
  const int64_t nanoseconds = origin_ns_ + std::max<TimePs>(time_ps, 0) / kPsPerNs;
  std::lock_guard guard(mutex_);
  const bool written = write_record(nanoseconds, frame, direction, zero_bytes);
  if (!written && file_ != nullptr) note_failure();
  ++(written ? packets_written_ : packets_failed_);
}

bool PcapWriter::write_record(int64_t nanoseconds, std::span<const uint8_t> frame, CaptureDirection direction,
                              size_t zero_bytes) {
  if (file_ == nullptr || error_ != 0) return false;
  const Pieces pieces = pieces_of(frame);
  size_t all_bytes = 0;
  for (const auto& piece : pieces) all_bytes += piece.size();
  const size_t frame_bytes = std::min<size_t>(all_bytes, snap_length_);
  const size_t zeros_written = std::min<size_t>(zero_bytes, snap_length_ - frame_bytes);
  const auto captured_bytes = static_cast<uint32_t>(frame_bytes + zeros_written);
  const auto original_bytes = static_cast<uint32_t>(all_bytes + zero_bytes);
  if (is_pcapng_) {
    const pcapng::PacketBlock block =
        pcapng::packet_block(static_cast<uint64_t>(nanoseconds), captured_bytes, original_bytes, direction);
    return put(block.before.data(), block.before.size()) && put_pieces(pieces, frame_bytes) &&
           put_zeros(zeros_written) && put(block.after.data(), block.after.size());
  }
  const RecordHeader header{.seconds = static_cast<uint32_t>(nanoseconds / 1'000'000'000),
                            .nanoseconds = static_cast<uint32_t>(nanoseconds % 1'000'000'000),
                            .captured_bytes = captured_bytes,
                            .original_bytes = original_bytes};
  return put(&header, sizeof header) && put_pieces(pieces, frame_bytes) && put_zeros(zeros_written);
}

PcapWriter::Pieces PcapWriter::pieces_of(std::span<const uint8_t> frame) const {
  // An update of credits has a shim's EtherType, and any number where a shim says what follows it.
  if (shims_ == CaptureShims::kKept || mac_control::is_credit_update(frame)) return {frame};
  const std::optional<BehindShims> place = behind_shims(frame);
  const bool is_ip =
      place && (place->ethertype == roce::kEtherTypeIpv4 || place->ethertype == roce::kEtherTypeIpv6);
  if (!is_ip) return {frame};
  constexpr size_t kAddressBytes = 2 * sizeof(roce::MacAddress);
  return {frame.first(kAddressBytes), frame.subspan(place->ethertype_at, sizeof place->ethertype),
          frame.subspan(place->rest_at)};
}

bool PcapWriter::put_pieces(const Pieces& pieces, size_t limit) {
  for (const auto& piece : pieces) {
    const size_t size = std::min(piece.size(), limit);
    if (size > 0 && !put(piece.data(), size)) return false;
    limit -= size;
  }
  return true;
}

bool PcapWriter::put_zeros(size_t count) {
  static constexpr std::array<uint8_t, 1024> kZeros{};
  while (count > 0) {
    const size_t piece_bytes = std::min(count, kZeros.size());
    if (!put(kZeros.data(), piece_bytes)) return false;
    count -= piece_bytes;
  }
  return true;
}

void PcapWriter::flush() {
  std::lock_guard guard(mutex_);
  if (file_ != nullptr && std::fflush(file_) != 0) note_failure();
}

void PcapWriter::close() {
  std::lock_guard guard(mutex_);
  if (file_ == nullptr) return;
  close_file();
  if (error_ != 0)
    throw std::system_error(error_, std::generic_category(), "capture file '" + path_ + "' is incomplete");
}

void PcapWriter::close_file() {
  if (file_ != nullptr && std::fclose(file_) != 0) note_failure();
  file_ = nullptr;
}

// The first reason is the one to report.
void PcapWriter::note_failure() {
  if (error_ == 0) error_ = errno;
}

uint64_t PcapWriter::packets_written() const {
  std::lock_guard guard(mutex_);
  return packets_written_;
}

uint64_t PcapWriter::packets_failed() const {
  std::lock_guard guard(mutex_);
  return packets_failed_;
}

int PcapWriter::error() const {
  std::lock_guard guard(mutex_);
  return error_;
}

}  // namespace weft
