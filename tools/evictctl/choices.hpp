#pragma once
#include <CLI/App.hpp>
#include <map>
#include <string>
#include <vector>

namespace evictd::ctl {

/// Words that an argument takes and no others: who types one wrongly is told them, and shell completion offers them.
class Choices {
 public:
  void limit(CLI::Option& option, std::vector<std::string> words);
  /// Completion alone: what else may be given is for the command to say.
  void suggest(const CLI::Option& option, std::vector<std::string> words);

  /// Empty where anything goes.
  [[nodiscard]] std::vector<std::string> of(const CLI::Option& option) const;

 private:
  std::map<const CLI::Option*, std::vector<std::string>> words_;
};

/// "memory.available", …: all eviction signals.
[[nodiscard]] std::vector<std::string> signal_names();
/// These and what events have in their place: "preemption", "emptydirfs.limit", …
[[nodiscard]] std::vector<std::string> cause_names();

}  // namespace evictd::ctl
