#include "browser.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <optional>

#include "testbed/failure.hpp"
#include "testbed/files.hpp"
#include "testbed/wait.hpp"
#include "web/http_client.hpp"

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace json = boost::json;
using namespace std::chrono_literals;

namespace integration {
namespace {

std::filesystem::path profile_of(const testbed::Testbed& testbed) { return testbed.directory() / "chromium"; }

testbed::Process start(const testbed::Testbed& testbed) {
  return testbed.spawn(
      {"chromium-headless-shell", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-breakpad",
       "--no-first-run", "--remote-debugging-port=0", "--window-size=1280,1800",
       "--user-data-dir=" + profile_of(testbed).native(), "about:blank"},
      {.output = testbed.directory() / "chromium.log", .errors = testbed.directory() / "chromium.log"});
}

}  // namespace

struct Browser::Connection {
  Connection(std::uint16_t port, const std::string& path) {
    socket.next_layer().connect({asio::ip::address_v4::loopback(), port});
    socket.read_message_max(64 << 20);
    socket.handshake(fmt::format("127.0.0.1:{}", port), path);
  }

  /// The next message.
  json::value read() {
    beast::flat_buffer buffer;
    std::optional<boost::system::error_code> done;
    socket.async_read(buffer, [&](boost::system::error_code error, std::size_t) { done = error; });
    reactor.restart();
    reactor.run_for(testbed::patient(60s));
    if (!done || *done) {
      const auto what = done ? done->message() : "it says nothing";
      socket.next_layer().close();
      reactor.restart();
      reactor.run();  // what is pending refers to this function's variables
      testbed::fail("the browser: " + what);
    }
    return json::parse(beast::buffers_to_string(buffer.data()));
  }

  asio::io_context reactor{1};
  beast::websocket::stream<asio::ip::tcp::socket> socket{reactor};
};

Browser::Browser(testbed::Testbed& testbed) : process_{start(testbed)} {
  const auto port_file = profile_of(testbed) / "DevToolsActivePort";
  std::uint16_t port = 0;
  testbed::wait_until("the browser listens", 90s, [&] {
    const auto text = testbed::try_read_file(port_file);
    if (!process_.running())
      testbed::fail("the browser ended: " + testbed::try_read_file(testbed.directory() / "chromium.log").value_or(""));
    if (text && text->find('\n') != std::string::npos) port = static_cast<std::uint16_t>(std::stoi(*text));
    return port != 0;
  });
  std::string path;
  testbed::wait_until("the browser has a page", 60s, [&] {
    const auto targets = json::parse(evictd::test::http_get(port, "/json/list").body);
    for (const auto& target : targets.as_array())
      if (target.at("type") == "page") path = "/devtools/page/" + std::string(target.at("id").as_string());
    return !path.empty();
  });
  connection_ = std::make_unique<Connection>(port, path);
  for (const auto* domain : {"Page.enable", "Runtime.enable", "Log.enable"}) call(domain, {});
}

Browser::~Browser() {
  try {
    call("Browser.close", {});
    if (process_.wait(testbed::patient(10s))) return;
  } catch (const std::exception&) {
    // It is ended one way or another.
  }
  process_.kill();
}

void Browser::open(const std::string& url) {
  const auto answer = call("Page.navigate", {{"url", url}});
  if (const auto* error = answer.as_object().if_contains("errorText"))
    testbed::fail(fmt::format("{}: {}", url, json::serialize(*error)));
  wait_until("document.readyState === 'complete' && location.href === " + json::serialize(json::value(url)));
}

json::value Browser::evaluate(std::string_view expression) {
  const auto answer = call("Runtime.evaluate", {{"expression", expression}, {"returnByValue", true}});
  if (answer.as_object().contains("exceptionDetails"))
    testbed::fail(fmt::format("{}: {}", expression, json::serialize(answer)));
  const auto* value = answer.at("result").as_object().if_contains("value");
  return value != nullptr ? *value : json::value{};
}

void Browser::wait_until(std::string_view expression) {
  // What it looks at may not be there yet.
  const auto tried = fmt::format("(() => {{ try {{ return {}; }} catch (error) {{ return false; }} }})()", expression);
  if (testbed::comes_true(60s, [&] { return holds(tried); })) return;
  std::string said;
  for (const auto& complaint : complaints()) said += "\n" + complaint;
  testbed::fail(fmt::format("it is still not so in the page: {}{}\n{}", expression, said,
                            json::serialize(evaluate("document.body.innerText"))));
}

std::vector<std::string> Browser::complaints() {
  static_cast<void>(evaluate("1"));  // what came before its answer is noted
  return complaints_;
}

json::value Browser::call(std::string_view method, json::object parameters) {
  const auto id = ++last_id_;
  connection_->socket.write(
      asio::buffer(json::serialize(json::object{{"id", id}, {"method", method}, {"params", std::move(parameters)}})));
  for (;;) {
    auto message = connection_->read();
    const auto* answered = message.as_object().if_contains("id");
    if (answered == nullptr || *answered != id) {
      note(message);
      continue;
    }
    if (const auto* error = message.as_object().if_contains("error"))
      testbed::fail(fmt::format("{}: {}", method, json::serialize(*error)));
    return message.at("result");
  }
}

void Browser::note(const json::value& message) {
  const auto* method = message.as_object().if_contains("method");
  if (method == nullptr) return;
  const auto& parameters = message.at("params");
  if (*method == "Runtime.exceptionThrown") complaints_.push_back(json::serialize(parameters));
  if (*method == "Log.entryAdded" && parameters.at("entry").at("level") == "error")
    complaints_.push_back(json::serialize(parameters));
}

}  // namespace integration
