#include "evictctl/top/feed.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <optional>
#include <utility>

#include "async/offload.hpp"

namespace evictd::ctl {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr auto interval = 1s;
constexpr auto refreshed_within = 3s;
constexpr std::size_t events_kept = 200;

bool is_lost(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
         status.error_code() == grpc::StatusCode::CANCELLED;
}

}  // namespace

Feed::Feed(asio::io_context& loop, Client first, Connect connect, TopState& state, std::function<void()> changed)
    : connect_{std::move(connect)},
      changed_{std::move(changed)},
      state_{state},
      client_{std::make_shared<const Client>(std::move(first))},
      loop_{loop},
      next_look_{loop} {
  asio::co_spawn(loop, run(), rethrow);
}

Feed::~Feed() {
  if (call_ != nullptr) call_->TryCancel();
  if (stream_ != nullptr) stream_->TryCancel();
  threads_.join();
}

asio::awaitable<void> Feed::run() {
  for (;;) {
    const auto signal = state_.signal;
    if (const auto looked = co_await look(); !looked) lose(looked.error());
    changed_();
    if (state_.signal != signal) continue;
    next_look_.expires_after(interval);
    co_await next_look_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

asio::awaitable<Result<void>> Feed::look() {
  if (!client_) {
    std::optional<Result<Client>> connected;
    const auto connect = [&] { return connected.emplace(connect_()).has_value(); };
    const bool is_connected = co_await async::offload(threads_.get_executor(), connect);
    if (!is_connected) co_return std::unexpected(connected->error());
    client_ = std::make_shared<const Client>(**std::move(connected));
  }
  const v1::GetNodeStatusRequest whole;
  v1::NodeStatus status;
  const auto seen = co_await call(&v1::EvictionService::Stub::GetNodeStatus, whole, status);
  if (!seen.ok()) co_return std::unexpected(client_->explain(seen));

  v1::RankPodsRequest request;
  request.set_signal(state_.signal);
  v1::RankPodsResponse ranking;
  const auto ranked = co_await call(&v1::EvictionService::Stub::RankPods, request, ranking);
  if (is_lost(ranked)) co_return std::unexpected(client_->explain(ranked));

  if (stream_ == nullptr) asio::co_spawn(loop_, follow(client_), rethrow);
  state_.trouble.clear();
  state_.status = std::move(status);
  state_.ranking = std::move(ranking);
  state_.ranking_error = ranked.ok() ? "" : client_->explain(ranked).message;
  co_return Result<void>{};
}

template <class Request, class Response>
asio::awaitable<grpc::Status> Feed::call(Method<Request, Response> method, const Request& request, Response& response) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + refreshed_within);
  call_ = &context;
  const auto work = [&] { return (client_->evictions().*method)(&context, request, &response); };
  auto status = co_await async::offload(threads_.get_executor(), work);
  call_ = nullptr;
  co_return status;
}

/// Until the stream ends: of an agent that is lost the next look at the status tells why. The last events are asked for
/// anew with each stream, since an agent that was restarted may count from 1 again. All that are kept come with them:
/// numbers may be missing, so none says where the last ones begin.
asio::awaitable<void> Feed::follow(std::shared_ptr<const Client> client) {
  grpc::ClientContext context;
  stream_ = &context;
  state_.events.clear();
  v1::StreamEventsRequest request;
  request.set_after_sequence(0);
  std::unique_ptr<grpc::ClientReader<v1::Event>> reader;
  v1::Event event;
  grpc::Status end;
  const auto read = [&] {
    if (!reader) reader = client->evictions().StreamEvents(&context, request);
    const bool has_come = reader->Read(&event);
    if (!has_come) end = reader->Finish();
    return has_come;
  };
  for (;;) {
    const bool has_come = co_await async::offload(threads_.get_executor(), read);
    if (!has_come) break;
    state_.events_error.clear();
    add(event);
  }
  stream_ = nullptr;
  if (!end.ok() && !is_lost(end)) state_.events_error = client->explain(end).message;
}

void Feed::lose(const Error& error) {
  if (stream_ != nullptr) stream_->TryCancel();
  client_.reset();
  state_.events_error.clear();
  if (state_.trouble.empty()) state_.trouble_since = std::chrono::system_clock::now();
  state_.trouble = error.message;
}

/// That events before the first one are not kept any more is no news.
void Feed::add(const v1::Event& event) {
  if (event.kind() == v1::Event::GAP && state_.events.empty()) return;
  state_.events.push_back(event);
  if (state_.events.size() > events_kept) state_.events.pop_front();
  changed_();
}

}  // namespace evictd::ctl
