#include "web/page.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>
#include <string_view>

#include "web/page_parts.hpp"

namespace evictd::web {
namespace {

/// As CSP names a text: "sha256-BASE64".
std::string hash_of(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::array<unsigned char, 4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1> base64{};
  const auto size = EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(digest.size()));
  return "sha256-" + std::string(reinterpret_cast<const char*>(base64.data()), static_cast<std::size_t>(size));
}

/// Fills an element that stands empty in the page.
void fill(std::string& html, std::string_view element, std::string_view text) {
  const auto opening = fmt::format("<{}>", element);
  if (const auto place = html.find(opening); place != std::string::npos) html.insert(place + opening.size(), text);
}

}  // namespace

Page make_page() {
  Page page{.html = std::string(page_html), .security_policy = {}};
  fill(page.html, "style", page_css);
  fill(page.html, "script", page_js);
  page.security_policy = fmt::format(
      "default-src 'none'; script-src '{}'; style-src '{}'; connect-src 'self'; img-src data:; base-uri 'none'; "
      "form-action 'none'; frame-ancestors 'none'",
      hash_of(page_js), hash_of(page_css));
  return page;
}

}  // namespace evictd::web
