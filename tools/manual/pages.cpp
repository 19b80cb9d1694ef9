#include "manual/pages.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "config/agent_configuration.hpp"

namespace evictd::manual {
namespace {

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// Of the UTF-8 character of several bytes at `at`, which moves to its last byte.
std::uint32_t take_code_point(std::string_view text, std::size_t& at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const auto following = first >= 0xF0 ? 3U : first >= 0xE0 ? 2U : 1U;
  std::uint32_t code_point = first & (0x3FU >> following);
  for (unsigned i = 0; i < following && at + 1 < text.size(); ++i)
    code_point = code_point << 6U | (static_cast<unsigned char>(text[++at]) & 0x3FU);
  return code_point;
}

std::vector<config::KeyDescription> all_keys() { return config::describe({}); }

/// "": it stands in none.
std::string section_of(const config::KeyDescription& key) {
  const auto dot = key.path.find('.');
  return dot == std::string::npos ? std::string{} : key.path.substr(0, dot);
}

std::string roff_keys() {
  std::string text;
  std::string section;
  for (const auto& key : all_keys()) {
    if (section_of(key) != section) {
      section = section_of(key);
      text += fmt::format(".SS {}\n", section);
    }
    const auto standard = key.default_value.empty() ? "none" : "\\fB" + roff(key.default_value) + "\\fR";
    text += fmt::format(".TP\n\\fB{}\\fR (default: {})\n{}\n.br\nMay be: {}.\n", roff(key.path), standard,
                        roff(key.meaning), roff(key.type));
  }
  return text;
}

}  // namespace

std::string roff(std::string_view text) {
  std::string escaped;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto c = text[at];
    if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";  // what is copied from the page is to be a minus sign
    } else if (c == '~' || c == '^' || c == '`') {
      escaped += c == '~' ? "\\(ti" : c == '^' ? "\\(ha" : "\\(ga";  // not the accents that they stand for
    } else if ((c == '.' || c == '\'') && escaped.empty()) {
      escaped += "\\&" + std::string(1, c);
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      escaped += fmt::format("\\[u{:04X}]", take_code_point(text, at));
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string page(std::string_view page_template, std::string_view version) {
  return replaced(replaced(std::string(page_template), "@VERSION@", version), "@KEYS@\n", roff_keys());
}

}  // namespace evictd::manual
