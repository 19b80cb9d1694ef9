#include "devices/registration.hpp"

#include <deviceplugin.pb.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "core/printable.hpp"

namespace evictd::devices {
namespace {

constexpr std::string_view supported_version = "v1beta1";
constexpr std::string_view of_quotas = "requests.";
constexpr std::size_t longest_domain = 253;
constexpr std::size_t longest_label = 63;  // and the longest name behind a domain
/// Room for a directory beside it in a socket's path, and more than any plugin needs.
constexpr std::size_t longest_endpoint = 255;

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_letter_or_digit(char c) { return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z'); }

/// A DNS subdomain (RFC 1123).
bool is_domain(std::string_view text) {
  if (text.empty() || text.size() > longest_domain) return false;
  while (true) {
    const auto label = text.substr(0, text.find('.'));
    const bool is_right = !label.empty() && is_lower_or_digit(label.front()) && is_lower_or_digit(label.back()) &&
                          std::ranges::all_of(label, [](char c) { return is_lower_or_digit(c) || c == '-'; });
    if (!is_right) return false;
    if (label.size() == text.size()) return true;
    text.remove_prefix(label.size() + 1);
  }
}

bool is_name_in_domain(std::string_view text) {
  return !text.empty() && text.size() <= longest_label && is_letter_or_digit(text.front()) &&
         is_letter_or_digit(text.back()) &&
         std::ranges::all_of(text, [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; });
}

bool is_file_name(std::string_view text) {
  return !text.empty() && text.size() <= longest_endpoint && text != "." && text != ".." &&
         text.find('/') == std::string_view::npos && text.find('\0') == std::string_view::npos;
}

}  // namespace

bool is_resource_of_plugins(std::string_view name) {
  const auto slash = name.find('/');
  if (slash == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos) return false;
  return !name.starts_with(of_quotas) && is_domain(std::string(of_quotas).append(name.substr(0, slash))) &&
         is_name_in_domain(name.substr(slash + 1));
}

Result<Registration> read_registration(const ::v1beta1::RegisterRequest& request) {
  if (request.version() != supported_version)
    return fail(fmt::format("requested API version \"{}\" is not supported by kubelet. Supported version is [\"{}\"]",
                            core::printable(request.version()), supported_version));
  if (!is_resource_of_plugins(request.resource_name()))
    return fail(fmt::format("the ResourceName \"{}\" is invalid", core::printable(request.resource_name())));
  if (!is_file_name(request.endpoint()) || request.endpoint() == registration_socket)
    return fail(
        fmt::format("the endpoint \"{}\" is not the name of a plugin's socket in the directory of device plugins",
                    core::printable(request.endpoint())));
  return Registration{.resource = request.resource_name(), .endpoint = request.endpoint()};
}

}  // namespace evictd::devices
