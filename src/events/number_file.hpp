#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "os/file_descriptor.hpp"
#include "os/saved_slots.hpp"

namespace evictd::events {

/// The highest number that any event may have, kept over restarts. It is written before numbers up to it are given, so
/// the next evictd after a crash goes on beyond it.
///
/// Two slots of a file of fixed size are written in turn, each with a checksum: a write that is torn leaves the other
/// one, and a full disk takes it too. The slots of an earlier evictd's file are read, and make way for these one after
/// the other. Any thread, one at a time.
class NumberFile {
 public:
  /// Makes the file where it is missing. What is in no slot readable, or was written by a newer evictd, is set aside.
  [[nodiscard]] static Result<NumberFile> open(const std::filesystem::path& path);

  /// Nothing: the file is new, or could not be read.
  [[nodiscard]] std::optional<std::uint64_t> highest() const { return highest_; }
  /// The number that was written before highest() where that one was higher: an orderly end lowers what was reserved.
  /// 0: it was not, or the other slot cannot be read.
  [[nodiscard]] std::uint64_t lowered_from() const { return highest_ && before_ > *highest_ ? before_ : 0; }
  /// What was set aside and why, one line; empty: nothing.
  [[nodiscard]] const std::string& complaint() const { return complaint_; }

  /// Waits for the disk. May also lower it.
  [[nodiscard]] Result<void> write(std::uint64_t highest);

 private:
  NumberFile(std::filesystem::path path, os::FileDescriptor file) : path_(std::move(path)), file_(std::move(file)) {}
  [[nodiscard]] bool read();
  [[nodiscard]] bool read_first_format();
  [[nodiscard]] Result<void> make();

  std::filesystem::path path_;
  os::FileDescriptor file_;
  os::SavedSlots slots_{{}};
  std::optional<std::uint64_t> highest_;
  std::uint64_t before_ = 0;  // in the other slot; 0: nothing is known
  std::string complaint_;
};

}  // namespace evictd::events
