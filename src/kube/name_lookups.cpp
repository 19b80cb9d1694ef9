#include "kube/name_lookups.hpp"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <string>
#include <system_error>
#include <utility>

namespace asio = boost::asio;

namespace evictd::kube {
namespace {

using asio::ip::tcp;

Result<Endpoints> ask_resolver(const std::string& host, const std::string& port) {
  asio::io_context context;
  tcp::resolver resolver{context};
  boost::system::error_code error;
  const auto results = resolver.resolve(host, port, tcp::resolver::numeric_service, error);
  if (error) return fail("cannot be resolved: " + error.message());
  Endpoints endpoints;
  for (const auto& result : results) endpoints.push_back(result.endpoint());
  return endpoints;
}

}  // namespace

Result<std::unique_ptr<async::SideThread>> NameLookups::begin(const asio::any_io_executor& reactor,
                                                              const Server& server,
                                                              std::move_only_function<void(Result<Endpoints>&&)> done) {
  if (*under_way_ >= most_)
    return fail(fmt::format("cannot be resolved: {} look-ups of names are under way already", most_));
  ++*under_way_;
  const std::shared_ptr<void> counted{nullptr, [count = under_way_](std::nullptr_t) { --*count; }};
  try {
    auto thread = std::make_unique<async::SideThread>(reactor, "look up a name");
    const auto found = std::make_shared<Result<Endpoints>>();
    thread->run([host = server.host, port = server.port, found, counted] { *found = ask_resolver(host, port); },
                [found, done = std::move(done)] mutable { done(std::move(*found)); });
    return thread;
  } catch (const std::system_error& error) {
    return fail(fmt::format("cannot be resolved: no thread can be had: {}", error.code().message()));
  }
}

}  // namespace evictd::kube
