#pragma once
#include <boost/json.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "testbed/testbed.hpp"

namespace integration {

/// A headless Chromium with one page, driven by its DevTools protocol. Its profile is in the testbed's directory; its
/// processes end with it, or with the testbed at the latest.
class Browser {
 public:
  explicit Browser(testbed::Testbed& testbed);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  /// Returns when it is loaded.
  void open(const std::string& url);
  /// What an expression of JavaScript is in the page. Fails where it throws.
  [[nodiscard]] boost::json::value evaluate(std::string_view expression);
  [[nodiscard]] bool holds(std::string_view expression) { return evaluate(expression) == true; }
  /// Waits until the expression is true; fails with what the page says by then.
  void wait_until(std::string_view expression);
  /// What the page complained of so far: exceptions, errors, what its policy forbade.
  [[nodiscard]] std::vector<std::string> complaints();

 private:
  struct Connection;
  boost::json::value call(std::string_view method, boost::json::object parameters);
  void note(const boost::json::value& message);

  testbed::Process process_;
  std::unique_ptr<Connection> connection_;
  std::int64_t last_id_ = 0;
  std::vector<std::string> complaints_;
};

}  // namespace integration
