#pragma once
#include <string_view>
#include <vector>

#include "evict/eviction_record.hpp"
#include "os/journal.hpp"

namespace evictd::agent {

/// By which `journalctl MESSAGE_ID=…` shows all evictions; the catalog explains it (tools/deploy/systemd).
inline constexpr std::string_view eviction_message_id = "43fd61b8e6b448189951dc079307fbce";

/// An eviction as one journal entry: who went, why, and how long each stage took. `outcome`: "cleaned up",
/// "timed out: …", "failed: …".
[[nodiscard]] std::vector<os::JournalField> eviction_fields(const evict::EvictionRecord& record,
                                                            std::string_view outcome);

}  // namespace evictd::agent
