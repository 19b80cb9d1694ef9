#include "os/journal.hpp"

#include <sys/uio.h>
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <fmt/format.h>
#include <systemd/sd-journal.h>

#include <vector>

#include "core/printable.hpp"

namespace evictd::os {

void write_journal_entry(int priority, std::string_view message, std::span<const JournalField> fields) {
  std::vector<std::string> entries{fmt::format("MESSAGE={}", core::printable(message)),
                                   fmt::format("PRIORITY={}", priority), "SYSLOG_IDENTIFIER=evictd"};
  for (const auto& [name, value] : fields) entries.push_back(fmt::format("{}={}", name, core::printable(value)));
  std::vector<iovec> vectors;
  vectors.reserve(entries.size());
  for (auto& entry : entries) vectors.push_back({entry.data(), entry.size()});
  // Without a journald no entry is written; the log has the same in lines.
  (void)sd_journal_sendv(vectors.data(), static_cast<int>(vectors.size()));
}

}  // namespace evictd::os
