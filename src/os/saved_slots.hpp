#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace evictd::os {

/// Two slots of a file, written in turn, each with a generation and a checksum. At whatever moment the process is
/// killed, and wherever a write is torn, one of them holds; and where all blocks of the file exist from the start, a
/// full file system takes nothing away. The caller owns the file and decides when it waits for the disk. Any thread,
/// one at a time.
///
/// A slot is, little end first: its generation (8 bytes, from 1 on), the content's length (4), the CRC-32C of both and
/// of the content (4), the content.
class SavedSlots {
 public:
  static constexpr std::size_t head_size = 8 + 4 + 4;

  /// Where the slots lie in the file, in bytes: both one after the other, in blocks of their own.
  struct Place {
    std::size_t offset = 0;
    std::size_t slot_size = 4096;
  };

  explicit SavedSlots(Place place) : place_{place} {}

  /// What was stored last; absent: nothing ever, or nothing that is whole. From here store() goes on.
  [[nodiscard]] std::optional<std::string> read(int file);
  /// Whether nothing was ever stored: both heads are zeros.
  [[nodiscard]] bool are_untouched(int file) const;

  /// Writes the slot that does not hold, which holds from then on. False: that failed, as errno says, or the content
  /// is longer than largest(), which is EMSGSIZE; what was stored before holds.
  [[nodiscard]] bool store(int file, std::string_view content);
  /// Bytes that a slot takes.
  [[nodiscard]] std::size_t largest() const { return place_.slot_size - head_size; }

  /// Of the slot that holds; 0: none does.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  /// The next store() follows a slot of this generation, which something else has found in the file.
  void go_on_after(std::uint64_t generation) { generation_ = generation; }
  /// Where the slot of this generation lies in the file.
  [[nodiscard]] std::size_t offset_of(std::uint64_t generation) const {
    return place_.offset + generation % 2 * place_.slot_size;
  }

 private:
  struct Slot {
    std::uint64_t generation = 0;
    std::string content;
  };
  [[nodiscard]] std::optional<Slot> read_slot(int file, std::size_t offset) const;

  Place place_;
  std::uint64_t generation_ = 0;
};

}  // namespace evictd::os
