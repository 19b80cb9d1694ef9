#include "web/page.hpp"

#include <doctest/doctest.h>

#include <string>

namespace evictd::web::page_test {

namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the page is one file: nothing is fetched but its stream, and its policy allows no more") {
  const auto page = evictd::web::make_page();
  CHECK(page.html.starts_with("<!DOCTYPE html>"));
  CHECK(has(page.html, "<style>:root"));
  CHECK(has(page.html, "<script>'use strict'"));
  CHECK(has(page.html, "new EventSource('/events')"));
  for (const auto* part : {"http:", "https:", " src=", "@import", "url(", "<link rel=\"stylesheet"}) {
    CAPTURE(part);
    // The namespace of SVG is a name, not an address.
    auto text = page.html;
    if (const auto name = text.find("http://www.w3.org/2000/svg"); name != std::string::npos) text.erase(name, 26);
    CHECK_FALSE(has(text, part));
  }
  CHECK(has(page.security_policy, "default-src 'none'; script-src 'sha256-"));
  CHECK(has(page.security_policy, "connect-src 'self'"));
  CHECK_FALSE(has(page.security_policy, "unsafe"));
}

TEST_CASE("what others named is set as text, never as markup") {
  const auto page = evictd::web::make_page();
  for (const auto* part : {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "srcdoc"}) {
    CAPTURE(part);
    CHECK_FALSE(has(page.html, part));
  }
}

}  // namespace evictd::web::page_test
