#include "api/pre_kill_stream.hpp"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "api/audit.hpp"
#include "api/permission.hpp"
#include "core/printable.hpp"
#include "os/log.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;

namespace evictd::api {
namespace {

constexpr std::size_t longest_agent_name = 64;

grpc::Status invalid(std::string why) { return {grpc::StatusCode::INVALID_ARGUMENT, std::move(why)}; }

/// OK, or why it is no name.
grpc::Status check_agent_name(const std::string& name) {
  if (name.empty()) return invalid("name: the first message says how the caller is called");
  if (name.size() > longest_agent_name)
    return invalid(fmt::format("name: {} bytes are more than {}", name.size(), longest_agent_name));
  if (core::printable(name) != name) return invalid("name: something in it is not printable");
  return grpc::Status::OK;
}

bool is_over(const v1::PreKillIntent& intent) {
  return intent.deadline_monotonic_ns() <= os::now().time_since_epoch().count();
}

}  // namespace

PreKillStream::PreKillStream(PreKillStreams& streams, std::shared_ptr<PreKillCall> call, Caller caller)
    : streams_(streams),
      call_(std::move(call)),
      caller_(std::move(caller)),
      read_timer_(streams.reactor_),
      write_timer_(streams.reactor_) {}

void PreKillStream::begin() {
  watch(read_timer_, streams_.limits_.first_message, &PreKillStream::first_message_missing);
  call_->read();
}

void PreKillStream::close() {
  if (std::exchange(closed_, true)) return;
  leave();
  call_.reset();
}

void PreKillStream::received(const v1::PreKillAnswer& answer) {
  if (closed_) return;
  const auto most = streams_.limits_.longest_message;
  if (answer.ByteSizeLong() > most) return end(invalid(fmt::format("a message has more than {} bytes", most)));
  if (name_.empty()) return register_as(answer);
  if (!answer.has_done() || !answer.name().empty())
    return end(invalid("after the first message each one has `done`, and no name"));
  if (streams_.agents_->answered(*this, answer.done()))
    call_->read();
  else
    read_after_rest();
}

void PreKillStream::register_as(const v1::PreKillAnswer& answer) {
  read_timer_.cancel();
  auto checked = check_agent_name(answer.name());
  if (checked.ok() && answer.has_done()) checked = invalid("the first message has a name, and no `done`");
  streams_.audit(caller_, checked, checked.ok() ? answer.name() : "");
  if (!checked.ok()) return end(checked);
  name_ = answer.name();
  streams_.agents_->add(shared_from_this());
  os::log_info("{} is asked before a pod is killed", name_);
  call_->confirm();
  call_->read();
}

void PreKillStream::read_after_rest() { watch(read_timer_, streams_.limits_.rest, &PreKillStream::read_on); }

void PreKillStream::read_on() { call_->read(); }

bool PreKillStream::tell(PreKillCall::IntentPtr intent) {
  if (closed_) return false;
  std::erase_if(waiting_, [](const auto& earlier) { return is_over(*earlier); });
  if (waiting_.size() >= streams_.limits_.unread) return false;
  waiting_.push_back(std::move(intent));
  if (!writing_) send_next();
  return true;
}

void PreKillStream::send_next() {
  while (!waiting_.empty() && is_over(*waiting_.front())) waiting_.pop_front();
  if (waiting_.empty()) return;
  auto intent = std::move(waiting_.front());
  waiting_.pop_front();
  writing_ = true;
  watch(write_timer_, streams_.limits_.write_timeout, &PreKillStream::left_unread);
  call_->write(std::move(intent));
}

void PreKillStream::written(bool ok) {
  if (closed_) return;
  writing_ = false;
  write_timer_.cancel();
  if (ok)
    send_next();
  else
    peer_left();
}

void PreKillStream::peer_left() {
  if (closed_) return;
  if (!name_.empty()) os::log_info("{} is not asked before a pod is killed any more: it has left", name_);
  end(grpc::Status::OK);
}

void PreKillStream::watch(asio::steady_timer& timer, std::chrono::milliseconds time, void (PreKillStream::*is_over)()) {
  timer.expires_after(time);
  timer.async_wait([weak = weak_from_this(), is_over](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && !self->closed_) ((*self).*is_over)();
  });
}

void PreKillStream::first_message_missing() {
  end({grpc::StatusCode::DEADLINE_EXCEEDED,
       fmt::format("no first message came within {} ms", streams_.limits_.first_message.count())});
}

void PreKillStream::left_unread() {
  const auto timeout = streams_.limits_.write_timeout;
  os::log_warning("api: {} left what it is asked before a kill unread for {} ms and is cut off", name_,
                  timeout.count());
  call_->cut_off({grpc::StatusCode::CANCELLED, "what was asked was left unread for too long"});
  end({grpc::StatusCode::CANCELLED, "what was asked was left unread for too long"});
}

/// Nothing is asked of it any more, nor waited for.
void PreKillStream::leave() {
  read_timer_.cancel();
  write_timer_.cancel();
  waiting_.clear();
  if (!name_.empty()) streams_.agents_->remove(*this);
}

void PreKillStream::end(const grpc::Status& status) {
  const auto self = shared_from_this();  // it is erased
  closed_ = true;
  leave();
  call_->finish(status);
  streams_.streams_.erase(self);
}

PreKillStreams::PreKillStreams(asio::any_io_executor reactor, const Handlers& handlers, PreKillLimits limits)
    : reactor_(std::move(reactor)), agents_(handlers.pre_kill), auditor_(handlers.auditor), limits_(limits) {}

void PreKillStreams::open(const std::shared_ptr<PreKillCall>& call, const std::shared_ptr<rpc::OpenCalls>& calls,
                          Caller caller, rpc::CallBudget::Place place) {
  if (!call->begin(reactor_, calls, std::move(place))) return;
  asio::post(reactor_,
             [weak = weak_from_this(), weak_call = std::weak_ptr(call), caller = std::move(caller)]() mutable {
               const auto self = weak.lock();
               const auto open_call = weak_call.lock();
               if (self && open_call) self->begin(open_call, std::move(caller));
             });
}

void PreKillStreams::close() {
  closed_ = true;
  for (const auto& stream : std::exchange(streams_, {})) stream->close();
}

void PreKillStreams::begin(const std::shared_ptr<PreKillCall>& call, Caller caller) {
  if (closed_) return call->finish(rpc::shutting_down());
  auto allowed = permit(caller, Access::Change, "PreKill");
  if (allowed.ok() && agents_ == nullptr)
    allowed = {grpc::StatusCode::FAILED_PRECONDITION,
               "nobody is asked before a pod is killed: eviction.hooks.time is 0s, or evictd runs with --dry-run"};
  if (allowed.ok() && streams_.size() >= limits_.streams)
    allowed = {grpc::StatusCode::RESOURCE_EXHAUSTED,
               fmt::format("{} callers already: no more are asked before a pod is killed", limits_.streams)};
  if (!allowed.ok()) {
    audit(caller, allowed, "");
    return call->finish(allowed);
  }
  const auto stream = *streams_.insert(std::make_shared<PreKillStream>(*this, call, std::move(caller))).first;
  call->attach(stream);
  stream->begin();
}

void PreKillStreams::audit(const Caller& caller, const grpc::Status& outcome, const std::string& name) {
  if (auditor_ == nullptr) return;
  auto audit = audit_pre_kill(caller, outcome, name);
  if (refusals_.is_told(caller, outcome, std::chrono::steady_clock::now(), audit)) auditor_->audit(audit);
}

}  // namespace evictd::api
