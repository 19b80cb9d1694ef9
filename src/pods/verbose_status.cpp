#include "pods/verbose_status.hpp"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <utility>

#include "pods/host_port.hpp"

namespace evictd::pods {
namespace {

namespace json = boost::json;

/// Reads single values by their JSON pointer ("/config/linux") and keeps the first complaint, so that a caller asks for
/// all it wants and checks once.
class Reader {
 public:
  [[nodiscard]] static Result<Reader> parse(std::string_view text) {
    boost::system::error_code error;
    // containerd's objects nest 6 deep; the bound keeps a hostile one from exhausting the stack.
    auto root = json::parse(text, error, {}, json::parse_options{.max_depth = 32});
    if (error) return fail(fmt::format("verbose status is not JSON: {}", error.message()));
    if (!root.is_object()) return fail("verbose status is not a JSON object");
    return Reader{std::move(root)};
  }

  /// Null counts as absent: Go writes it for an empty pointer.
  [[nodiscard]] const json::value* find(std::string_view pointer) const {
    boost::system::error_code absent;
    const auto* value = root_.find_pointer(pointer, absent);
    return value && !value->is_null() ? value : nullptr;
  }

  std::int64_t number(std::string_view pointer) {
    const auto* value = find(pointer);
    if (!value) return 0;
    boost::system::error_code error;
    const auto number = value->to_number<std::int64_t>(error);
    if (error) complain(pointer, "a whole number of 64 bits");
    return error ? 0 : number;
  }

  std::string text(std::string_view pointer) {
    const auto* value = find(pointer);
    if (!value) return {};
    if (!value->is_string()) complain(pointer, "a string");
    return value->is_string() ? std::string(value->get_string()) : std::string{};
  }

  /// How many values are listed there.
  std::size_t size(std::string_view pointer) {
    const auto* value = find(pointer);
    if (!value) return 0;
    if (!value->is_array()) complain(pointer, "a list");
    return value->is_array() ? value->get_array().size() : 0;
  }

  template <class T>
  [[nodiscard]] Result<T> finish(T value) const {
    if (complaint_) return std::unexpected(*complaint_);
    return value;
  }

 private:
  explicit Reader(json::value root) : root_(std::move(root)) {}

  void complain(std::string_view pointer, std::string_view expected) {
    if (!complaint_) complaint_ = Error{fmt::format("verbose status: {} is not {}", pointer, expected)};
  }

  json::value root_;
  std::optional<Error> complaint_;
};

}  // namespace

Result<ContainerInfo> parse_container_info(std::string_view json) {
  auto reader = Reader::parse(json);
  if (!reader) return std::unexpected(reader.error());

  ContainerInfo info{.pid = reader->number("/pid"), .cgroups_path = reader->text("/runtimeSpec/linux/cgroupsPath")};
  if (reader->find("/config")) {
    info.resources = LinuxResources{
        .memory_limit = reader->number("/config/linux/resources/memory_limit_in_bytes"),
        .oom_score_adj = reader->number("/config/linux/resources/oom_score_adj"),
        .cpu_shares = reader->number("/config/linux/resources/cpu_shares"),
        .cpu_quota = reader->number("/config/linux/resources/cpu_quota"),
        .cpu_period = reader->number("/config/linux/resources/cpu_period"),
    };
  }
  return reader->finish(std::move(info));
}

Result<SandboxInfo> parse_sandbox_info(std::string_view json) {
  auto reader = Reader::parse(json);
  if (!reader) return std::unexpected(reader.error());
  SandboxInfo info{.cgroup_parent = reader->text("/config/linux/cgroup_parent")};
  const auto mappings = reader->size("/config/port_mappings");
  for (std::size_t i = 0; i < mappings; ++i) {
    const auto mapping = fmt::format("/config/port_mappings/{}", i);
    add_host_port(info.host_ports, reader->number(mapping + "/protocol"), reader->number(mapping + "/host_port"),
                  reader->text(mapping + "/host_ip"));
  }
  return reader->finish(std::move(info));
}

Result<RuntimeInfo> parse_runtime_info(std::string_view json) {
  auto reader = Reader::parse(json);
  if (!reader) return std::unexpected(reader.error());
  RuntimeInfo info{.sandbox_image = reader->text("/sandboxImage")};
  return reader->finish(std::move(info));
}

}  // namespace evictd::pods
