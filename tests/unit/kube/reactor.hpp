#pragma once
#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "cri/run.hpp"
#include "fixture/result.hpp"
#include "kube/client.hpp"

namespace evictd::test {

/// What a client needs to run. Declare it before the client.
struct KubeReactor {
  boost::asio::io_context context{1};
  boost::asio::thread_pool workers{1};

  template <class T>
  T run(boost::asio::awaitable<T> coroutine) {
    return test::run(context, std::move(coroutine));
  }
  template <class Done>
  bool run_until(Done done) {
    return test::run_until(context, std::move(done));
  }
};

/// For a plain http server.
inline kube::Credentials credentials_for(const std::string& url) {
  return fixture::value_of(kube::url_credentials(url, {}, {}));
}

/// For an https server whose certificate this authority signed.
inline kube::Credentials credentials_for(const std::string& url, const std::string& authority) {
  auto credentials = credentials_for(url);
  credentials.authorities.text = authority;
  return credentials;
}

inline kube::Request get(std::string target) { return {.method = "GET", .target = std::move(target)}; }

inline bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace evictd::test
