#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace evictd::host {

/// A field of a journal entry: an upper-case name such as EVICTD_POD, and any text.
using JournalField = std::pair<std::string, std::string>;

/// One entry for journald, wherever the log goes; where there is no journald, nothing. It is one datagram, and does not
/// wait for journald unless its socket is full.
void write_journal_entry(int priority, std::string_view message, std::span<const JournalField> fields);

}  // namespace evictd::host
