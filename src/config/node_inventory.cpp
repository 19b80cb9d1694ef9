#include "config/node_inventory.hpp"

#include <fmt/format.h>

#include "admission/number_list.hpp"

namespace evictd::config {

Result<std::pair<std::string, std::string>> parse_label(std::string_view text) {
  constexpr std::string_view of_keys = "/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  constexpr auto of_values = of_keys.substr(1);
  const auto equals = text.find('=');
  if (equals == 0 || equals == std::string_view::npos) return fail(fmt::format("\"{}\" is no KEY=VALUE", text));
  const auto value = text.substr(equals + 1);
  if (text.find_first_not_of(of_keys) != equals || value.find_first_not_of(of_values) != std::string_view::npos)
    return fail(
        fmt::format("\"{}\": a label has letters, digits, \"-\", \"_\" and \".\", and its key may have \"/\"", text));
  return std::pair{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

Result<admission::Device> parse_device(std::string_view text) {
  const auto equals = text.find('=');
  const auto at = text.find('@', equals == std::string_view::npos ? 0 : equals);
  const auto id = equals == std::string_view::npos ? "" : text.substr(equals + 1, at - equals - 1);
  // A name without a domain is Kubernetes' own ("cpu").
  if (id.empty() || text.substr(0, equals).find('/') == std::string_view::npos)
    return fail(fmt::format("\"{}\" is no device such as example.com/gpu=gpu0@0", text));
  admission::Device device{.resource = std::string(text.substr(0, equals)), .id = std::string(id)};
  if (at == std::string_view::npos) return device;
  const auto nodes = admission::parse_number_list(text.substr(at + 1));
  if (!nodes) return fail(nodes.error(), text);
  if (nodes->empty()) return fail(fmt::format("\"{}\" names no NUMA node after the \"@\"", text));
  device.numa_nodes.assign(nodes->begin(), nodes->end());
  return device;
}

std::string print_device(const admission::Device& device) {
  auto text = device.resource + "=" + device.id;
  if (device.numa_nodes.empty()) return text;
  return text + "@" + admission::print_number_list({device.numa_nodes.begin(), device.numa_nodes.end()});
}

}  // namespace evictd::config
