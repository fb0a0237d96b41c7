// Captures in the pcapng format where the file's name ends so, else in the nanosecond variant of pcap (magic
// 0xa1b23c4d), dated in emulated time: frames of time 0 bear `origin_ns`, which is 0 or the wall clock's time
// then.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <span>
#include <string>

#include "links/pcapng_format.hpp"
#include "packets/packet.hpp"
#include "time/time.hpp"

namespace weft {

enum class CaptureShims : uint8_t { kKept, kRemoved };

// One writer may serve several ports, also of several engines: it locks itself.
class PcapWriter {
 public:
  // Creates or truncates the file. Throws std::system_error if it can't be written.
  // pcap has no room for what the interface is.
  explicit PcapWriter(const std::string& path, uint32_t snap_length = 262'144, int64_t origin_ns = 0,
                      const CaptureInterface& interface = {}, CaptureShims shims = CaptureShims::kKept);
  ~PcapWriter();
  PcapWriter(const PcapWriter&) = delete;
  PcapWriter& operator=(const PcapWriter&) = delete;

  // Writes a frame, followed by so many zeros. Where shims are removed, an IP frame is written as if it had
  // been sent without them: no length or checksum of IP, UDP and RoCEv2 covers them. Others are written as
  // they are.
  void write(TimePs time_ps, std::span<const uint8_t> frame,
             CaptureDirection direction = CaptureDirection::kUnknown, size_t zero_bytes = 0);
  // Virtual bytes are restored as zeros.
  void write(TimePs time_ps, const Packet& packet, CaptureDirection direction) {
    write(time_ps, packet.bytes(), direction, packet.virtual_bytes());
  }
  // After a write that has failed nothing more is written, so that what is there can be read up to its end.
  void flush();
  // Further writes are ignored and counted. Throws std::system_error, once, if what was written before is not
  // all in the file; says which file and why.
  void close();

  const std::string& path() const { return path_; }
  uint64_t packets_written() const;
  // Frames that could not be written (disk full, file closed).
  uint64_t packets_failed() const;
  // Why the file is incomplete, as an errno; 0 as long as nothing has failed.
  int error() const;

 private:
  // What is written of a frame, one piece behind the other.
  using Pieces = std::array<std::span<const uint8_t>, 3>;

  Pieces pieces_of(std::span<const uint8_t> frame) const;
  bool write_record(int64_t nanoseconds, std::span<const uint8_t> frame, CaptureDirection direction,
                    size_t zero_bytes);
  bool put_pieces(const Pieces& pieces, size_t limit);
  bool put(const void* bytes, size_t size) { return std::fwrite(bytes, 1, size, file_) == size; }
  void close_file();
  void note_failure();
  bool put_zeros(size_t count);

  mutable std::mutex mutex_;
  std::string path_;
  std::FILE* file_ = nullptr;
  uint32_t snap_length_;
  int64_t origin_ns_;
  bool is_pcapng_;
  CaptureShims shims_;
  int error_ = 0;
  uint64_t packets_written_ = 0;
  uint64_t packets_failed_ = 0;
};

}  // namespace weft
