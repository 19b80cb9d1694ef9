#pragma once
#include <chrono>

namespace evictd::host {

/// From the next SIGTERM or SIGINT on the process ends within `patience`, whatever hangs: after that it writes a line
/// to stderr, if that can be done at once, and exits with code 1. What ends in time never notices.
///
/// A thread of its own looks for the signals beside everybody else who waits for them by Asio, so the reactor may be
/// what hangs. It lasts as long as the process. To be called once the reactor waits for them, too: from here on they
/// do not end the process by themselves.
void end_within(std::chrono::seconds patience);

/// The same from now on, without a signal: for a process that has failed and logged why.
void end_after(std::chrono::seconds patience);

/// Ends the process once the log is written, which is waited for half a second, without what else would be done at its
/// end: for when a thread was left behind that uses what would be destroyed.
[[noreturn]] void end_now(int exit_code);

}  // namespace evictd::host
