#include "kube/reflector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>

#include "async/offload.hpp"
#include "async/sleep.hpp"
#include "async/spawn.hpp"
#include "kube/client.hpp"
#include "kube/message.hpp"
#include "kube/objects.hpp"
#include "kube/url.hpp"
#include "os/now.hpp"

namespace asio = boost::asio;

namespace evictd::kube {
namespace {

using namespace std::chrono_literals;

using os::now;

/// Larger texts are parsed beside the reactor: 64 KiB take it 0.3 ms.
constexpr std::size_t large = std::size_t{64} << 10;
/// Parsing takes milliseconds. The workers may be busy with something else, but not for ever.
constexpr auto parse_deadline = 60s;
/// A watch that ends sooner, and brought nothing, is no reason to ask again at full speed.
constexpr auto shortest_useful_watch = 1s;

core::Duration share_of(core::Duration whole, double share) {
  return core::Duration{static_cast<core::Duration::rep>(static_cast<double>(whole.count()) * share)};
}

/// Why something ended that should have gone on.
struct Trouble {
  Error error;
  std::optional<core::Duration> retry_after{};
  bool is_gone = false;  ///< the version is of no use: list anew
  bool was_silent = false;
};

template <class T>
using Attempt = std::expected<T, Trouble>;

std::unexpected<Trouble> trouble(Error error) { return std::unexpected(Trouble{.error = std::move(error)}); }

std::unexpected<Trouble> refused(const Response& response, const std::string& where) {
  return std::unexpected(Trouble{.error = Error{describe(response)}.in(where),
                                 .retry_after = response.retry_after,
                                 .is_gone = response.status == 410});
}

}  // namespace

struct Reflector::Impl {
  using Self = std::shared_ptr<Impl>;

  [[nodiscard]] std::string target(std::string_view parameters) const {
    return fmt::format("{}?{}{}{}", collection.path, collection.query, collection.query.empty() ? "" : "&", parameters);
  }
  [[nodiscard]] std::string where() const { return client.url() + collection.path; }

  void tell_change() {
    if (!stopped) listener.state_changed(state);
  }

  void went_well() {
    state.last_contact = now();
    retry.succeeded(now());
  }

  static asio::awaitable<void> sleep(Self self, core::Duration duration) {
    if (self->stopped) co_return;
    self->timer.expires_after(duration);
    co_await async::wait(self->timer);
  }

  static asio::awaitable<void> run(Self self) {
    co_await sleep(self, share_of(self->options.longest_start_delay, self->random()));
    while (!self->stopped) {
      Attempt<void> done;
      if (self->version.empty()) done = co_await list(self);
      if (done && !self->stopped) done = co_await watch(self);
      if (done || self->stopped) continue;
      self->failed(done.error());
      co_await sleep(self, self->retry.failed(now(), done.error().retry_after));
    }
  }

  void failed(Trouble& failure) {
    const bool is_news = !state.stale_since || !state.last_error || state.last_error->message != failure.error.message;
    state.last_error = std::move(failure.error);
    if (failure.is_gone) version.clear();
    if (!state.stale_since) state.stale_since = failure.was_silent ? state.last_contact : now();
    if (is_news) tell_change();
  }

  static asio::awaitable<Attempt<ListPage>> read_page(Self self, std::string continue_token) {
    Request request;
    request.target =
        self->target(continue_token.empty() ? fmt::format("limit={}&resourceVersion=0", self->options.page_size)
                                            : fmt::format("limit={}&continue={}", self->options.page_size,
                                                          percent_encoded(continue_token)));
    auto response = co_await self->client.send(std::move(request), self->options.answer_deadline);
    if (self->stopped) co_return trouble({"stopped"});
    if (!response) co_return trouble(response.error());
    if (!response->is_success()) co_return refused(*response, self->where());

    auto work = [body = std::move(response->body)] { return parse_list(body); };
    auto page = co_await async::offload(self->workers, std::move(work), now() + parse_deadline);
    if (!page) co_return trouble(Error{"the list could not be parsed in time"}.in(self->where()));
    if (!*page) co_return trouble(page->error().in(self->where()));
    co_return **std::move(page);
  }

  static asio::awaitable<Attempt<void>> list(Self self) {
    std::vector<std::string> objects;
    std::string continue_token;
    std::string listed_version;
    do {
      auto page = co_await read_page(self, continue_token);
      if (self->stopped) co_return Attempt<void>{};
      if (!page) co_return std::unexpected(std::move(page.error()));
      if (objects.size() + page->objects.size() > self->options.most_objects)
        co_return trouble(
            Error{fmt::format("the list has more than {} objects", self->options.most_objects)}.in(self->where()));
      std::ranges::move(page->objects, std::back_inserter(objects));
      listed_version = std::move(page->resource_version);
      continue_token = std::move(page->continue_token);
    } while (!continue_token.empty());

    self->version = std::move(listed_version);
    ++self->state.lists;
    self->went_well();
    self->listener.replaced(std::move(objects));
    if (self->state.synced_since) co_return Attempt<void>{};
    self->state.synced_since = now();
    self->tell_change();
    co_return Attempt<void>{};
  }

  static asio::awaitable<Attempt<void>> watch(Self self) {
    const auto begun = now();
    const auto& [shortest, longest] = std::pair{self->options.shortest_watch, self->options.longest_watch};
    const auto length = shortest + share_of(longest - shortest, self->random());
    Request request;
    request.target = self->target(
        fmt::format("watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                    percent_encoded(self->version), std::chrono::ceil<std::chrono::seconds>(length).count()));
    auto opened = co_await self->client.open(std::move(request), self->options.answer_deadline);
    if (self->stopped) co_return Attempt<void>{};
    if (!opened) co_return trouble(opened.error());
    if (!opened->lines) co_return refused(opened->response, self->where());

    ++self->state.watches;
    self->went_well();
    if (std::exchange(self->state.stale_since, std::nullopt)) self->tell_change();
    const auto events_before = self->state.events;
    self->lines = std::move(opened->lines);
    const auto followed = co_await follow(self);
    self->lines.reset();
    if (!followed || self->stopped) co_return followed;
    if (self->state.events == events_before && now() - begun < shortest_useful_watch)
      co_return trouble(Error{"the server ended the watch at once"}.in(self->where()));
    // Before its time: the server goes away, and ends the watches of all nodes in the same moment.
    if (now() - begun < length) co_await sleep(self, share_of(self->options.retry.first, self->random()));
    co_return Attempt<void>{};
  }

  /// Hands out what the watch tells until the server ends it.
  static asio::awaitable<Attempt<void>> follow(Self self) {
    while (!self->stopped) {
      auto line = co_await self->lines->next(self->options.longest_silence);
      if (self->stopped) break;
      if (!line) {
        const bool was_silent = now() - *self->state.last_contact >= self->options.longest_silence;
        co_return std::unexpected(Trouble{.error = line.error(), .was_silent = was_silent});
      }
      if (!*line) break;
      auto event = co_await parse(self, **std::move(line));
      if (self->stopped) break;
      if (!event) co_return std::unexpected(Trouble{.error = event.error().in(self->where()), .is_gone = true});
      if (event->kind == WatchEvent::Kind::Failed) co_return std::unexpected(self->ended_by(*event));
      self->take(*std::move(event));
    }
    co_return Attempt<void>{};
  }

  static asio::awaitable<Result<WatchEvent>> parse(Self self, std::string line) {
    if (line.size() <= large) co_return parse_watch_event(line);
    auto work = [line = std::move(line)] { return parse_watch_event(line); };
    auto event = co_await async::offload(self->workers, std::move(work), now() + parse_deadline);
    if (!event) co_return fail("a watch event could not be parsed in time");
    co_return *std::move(event);
  }

  [[nodiscard]] Trouble ended_by(const WatchEvent& event) const {
    return {.error = Error{fmt::format("the watch ended: {} {}", event.code, event.message)}.in(where()),
            .is_gone = true};
  }

  void take(WatchEvent event) {
    ++state.events;
    went_well();
    version = std::move(event.resource_version);
    if (event.kind == WatchEvent::Kind::Bookmark) return;
    if (event.kind == WatchEvent::Kind::Upserted)
      listener.upserted(std::move(event.object));
    else
      listener.deleted(std::move(event.object));
  }

  asio::any_io_executor workers;
  Client& client;
  Collection collection;
  ReflectorListener& listener;
  ReflectorOptions options;
  Random random;
  RetryDelay retry;
  asio::steady_timer timer;
  ReflectorState state{};
  std::string version{};                // empty: list first
  std::unique_ptr<LineStream> lines{};  // of the watch that is on
  bool stopped = false;
};

Reflector::Reflector(asio::any_io_executor reactor, asio::any_io_executor workers, Client& client,
                     Collection collection, ReflectorListener& listener, ReflectorOptions options, Random random)
    : impl_{std::make_shared<Impl>(Impl{.workers = std::move(workers),
                                        .client = client,
                                        .collection = std::move(collection),
                                        .listener = listener,
                                        .options = options,
                                        .random = random,
                                        .retry = RetryDelay{options.retry, random},
                                        .timer = asio::steady_timer{reactor}})} {
  impl_->state.stale_since = now();
}

Reflector::~Reflector() { stop(); }

void Reflector::start() { async::spawn(impl_->timer.get_executor(), Impl::run(impl_), "watching the API server"); }

void Reflector::stop() {
  impl_->stopped = true;
  impl_->timer.cancel();
  if (impl_->lines) impl_->lines->close();
}

const ReflectorState& Reflector::state() const { return impl_->state; }

}  // namespace evictd::kube
