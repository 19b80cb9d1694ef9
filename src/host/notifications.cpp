#include "host/notifications.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "os/log.hpp"

namespace evictd::host {
namespace {

std::optional<NotifySocket> socket_from_environment() {
  const char* const address = std::getenv("NOTIFY_SOCKET");
  if (address == nullptr || *address == '\0') return std::nullopt;
  auto opened = NotifySocket::open(address);
  if (opened) return *std::move(opened);
  os::log_warning("NOTIFY_SOCKET: {}", opened.error().message);
  return std::nullopt;
}

}  // namespace

Notifications& notifications() {
  static Notifications own{socket_from_environment()};
  return own;
}

Notifications::~Notifications() {
  for (const auto& message : messages_)
    if (message.descriptor >= 0) ::close(message.descriptor);
}

void Notifications::news() const {
  if (listener_ != nullptr) listener_->notifications_added();
}

void Notifications::watchdog() {
  if (!socket_) return;
  watchdog_ = true;
  news();
}

void Notifications::status(std::string_view text) {
  if (!socket_) return;
  status_ = fmt::format("STATUS={}", text);
  news();
}

void Notifications::tell(std::string_view message) { add({.text = std::string(message)}); }

void Notifications::store(std::string_view name, int descriptor) {
  if (!socket_) return;  // a copy of a lock would hold it
  forget(name);
  add({.text = fmt::format("FDSTORE=1\nFDNAME={}", name),
       .stored_name = std::string(name),
       .descriptor = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)});
}

void Notifications::forget(std::string_view name) {
  drop_unsent(name);
  add({.text = fmt::format("FDSTOREREMOVE=1\nFDNAME={}", name), .stored_name = std::string(name)});
}

void Notifications::add(Message message) {
  if (!socket_) return;
  messages_.push_back(std::move(message));
  news();
}

void Notifications::drop_unsent(std::string_view name) {
  std::erase_if(messages_, [&](const Message& message) {
    if (message.stored_name != name) return false;
    if (message.descriptor >= 0) ::close(message.descriptor);
    return true;
  });
}

std::optional<core::Instant> Notifications::flush(core::Instant now) {
  if (!flush_watchdog() || !flush_messages()) return now + retry_interval;
  if (!status_) return std::nullopt;
  if (now < next_status_) return next_status_;
  next_status_ = now + status_interval;
  if (!socket_->all_read() || send(Kind::Other, *status_) == NotifySocket::Sent::Full) return next_status_;
  status_.reset();
  return std::nullopt;
}

/// Whether nothing is left to send, as the next.
bool Notifications::flush_watchdog() {
  if (!watchdog_) return true;
  const bool one_is_unread = last_sent_ == Kind::Watchdog && !socket_->all_read();
  watchdog_ = !one_is_unread && send(Kind::Watchdog, "WATCHDOG=1") == NotifySocket::Sent::Full;
  return !watchdog_;
}

bool Notifications::flush_messages() {
  while (!messages_.empty()) {
    const auto& [text, name, descriptor] = messages_.front();
    if (send(Kind::Other, text, descriptor) == NotifySocket::Sent::Full) return false;
    if (descriptor >= 0) ::close(descriptor);
    messages_.pop_front();
  }
  return true;
}

NotifySocket::Sent Notifications::send(Kind kind, std::string_view text, int descriptor) {
  const auto sent = socket_->send(text, descriptor);
  if (sent == NotifySocket::Sent::Yes) last_sent_ = kind;
  return sent;
}

}  // namespace evictd::host
