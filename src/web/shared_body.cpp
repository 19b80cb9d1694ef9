#include "web/shared_body.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "async/sleep.hpp"

namespace asio = boost::asio;

namespace evictd::web {
namespace {

/// A text that some wait for.
struct TextToCome {
  explicit TextToCome(const asio::any_io_executor& reactor) : over(reactor, asio::steady_timer::time_point::max()) {}

  asio::steady_timer over;          // cancelled then
  std::optional<std::string> text;  // none once it is over: it could not be made
};

struct SharedBody {
  decltype(Document::body) make;
  std::shared_ptr<TextToCome> coming;  // null: nobody makes it
};

/// However the making of the text ends.
class Making {
 public:
  explicit Making(std::shared_ptr<SharedBody> body) : body_(std::move(body)) {}
  ~Making() { std::exchange(body_->coming, nullptr)->over.cancel(); }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;

 private:
  std::shared_ptr<SharedBody> body_;
};

asio::awaitable<std::string> make_or_wait(std::shared_ptr<SharedBody> body) {
  if (const auto coming = body->coming) {
    co_await async::wait(coming->over);
    if (!coming->text) throw std::runtime_error("a text that others waited for could not be made");
    co_return *coming->text;
  }
  const auto reactor = co_await asio::this_coro::executor;
  body->coming = std::make_shared<TextToCome>(reactor);
  const Making making{body};
  auto text = co_await body->make();
  body->coming->text = text;
  co_return text;
}

}  // namespace

decltype(Document::body) share_body(decltype(Document::body) make) {
  return [body = std::make_shared<SharedBody>(std::move(make))] { return make_or_wait(body); };
}

}  // namespace evictd::web
