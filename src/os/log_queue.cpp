#include "os/log_queue.hpp"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <utility>

namespace evictd::os {
namespace {

using namespace std::chrono_literals;

constexpr int warning = 4;  // as syslog numbers it

std::size_t size_of(const LogEntry& entry) {
  auto size = sizeof(LogEntry) + entry.message.size();
  for (const auto& [name, value] : entry.fields) size += sizeof(JournalField) + name.size() + value.size();
  return size;
}

}  // namespace

LogQueue::LogQueue(LogSink& sink, Limits limits)
    : sink_{sink}, limits_{limits}, thread_{[this](const std::stop_token& stop) { run(stop); }} {}

LogQueue::~LogQueue() = default;

void LogQueue::push(LogEntry entry) {
  {
    const std::scoped_lock lock{mutex_};
    if (!has_room_for(entry)) {
      if (dropped_++ == 0) ++pending_;  // the line that will say so
      return;
    }
    add_dropped();
    add(std::move(entry));
  }
  change_.notify_one();
}

/// Once something was dropped, half of the queue has to be empty: otherwise a slow reader would get every other line,
/// and between two of them how many are missing.
bool LogQueue::has_room_for(const LogEntry& entry) {
  const auto share = dropped_ > 0 ? 2U : 1U;
  if (entries_.empty()) return true;  // however long it is
  return entries_.size() < limits_.lines / share && bytes_ + size_of(entry) <= limits_.bytes / share;
}

void LogQueue::add(LogEntry entry) {
  const auto size = size_of(entry);
  entries_.push_back(std::move(entry));
  bytes_ += size;
  ++pending_;
}

void LogQueue::add_dropped() {
  if (dropped_ == 0) return;
  const auto count =
      dropped_ == 1 ? std::string("1 line of the log was") : fmt::format("{} lines of the log were", dropped_);
  add({.priority = warning, .message = count + " dropped because its reader was too slow"});
  dropped_ = 0;
  --pending_;  // it was counted when the first line was dropped
}

void LogQueue::run(const std::stop_token& stop) {
  std::unique_lock lock{mutex_};
  while (change_.wait(lock, stop, [&] { return !entries_.empty(); }), !stop.stop_requested()) {
    const auto entry = std::move(entries_.front());
    entries_.pop_front();
    bytes_ -= size_of(entry);
    lock.unlock();
    try {
      sink_.write(entry);
    } catch (const std::exception&) {
      // There was no memory for it. The next line may have some.
    }
    lock.lock();
    if (entries_.empty()) add_dropped();
    --pending_;
  }
}

bool LogQueue::wait_until_written(core::Duration patience) const {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (pending_ > 0) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

}  // namespace evictd::os
