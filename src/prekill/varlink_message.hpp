#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

// What is said to a hook of systemd-oomd, and what it answers: JSON that ends with a NUL byte. (varlink.org; systemd
// 260: io.systemd.oom.Prekill)
namespace evictd::prekill {

/// A call of io.systemd.oom.Prekill.Notify, its end included. It is a plain call: one answer comes. `cgroup`: below the
/// root of the hierarchy, "/kubepods/pod1". Nothing else is in it, since hooks refuse what they do not know. Error: the
/// path cannot be written in JSON.
[[nodiscard]] Result<std::string> notify_call(std::string_view cgroup);

/// Whether an answer, without its end, says that the hook has done its part. Otherwise what is wrong, one printable
/// line of at most some 300 bytes: the name of a Varlink error, or that it is no answer to this call. Never throws.
[[nodiscard]] Result<void> read_notify_answer(std::string_view message);

/// Puts answers together from the pieces they arrive in.
class VarlinkReader {
 public:
  /// More than an error with its parameters needs.
  static constexpr std::size_t longest_answer = std::size_t{64} << 10;

  /// What was received. At most so many bytes are kept: `longest_answer`, and the piece.
  void add(std::string_view piece);
  /// The next whole answer, without its end; nothing while there is none. Error: it has become too long; there is no
  /// going on.
  [[nodiscard]] Result<std::optional<std::string>> next();

 private:
  std::string received_;
  std::size_t looked_at_ = 0;  // no end is in so many bytes
};

}  // namespace evictd::prekill
