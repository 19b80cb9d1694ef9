#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace evictd::os {

/// A field of a journal entry: an upper-case name such as EVICTD_POD, and any text.
using JournalField = std::pair<std::string, std::string>;

/// One entry for journald; where there is no journald, nothing. It is one datagram, which waits for as long as
/// journald's socket is full: os/log.hpp is for the reactor.
void write_journal_entry(int priority, std::string_view message, std::span<const JournalField> fields);

}  // namespace evictd::os
