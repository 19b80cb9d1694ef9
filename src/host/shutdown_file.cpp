#include "host/shutdown_file.hpp"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "config/fields.hpp"
#include "config/json.hpp"
#include "core/duration.hpp"
#include "os/atomic_file.hpp"

namespace json = boost::json;

namespace evictd::host {
namespace {

constexpr std::int64_t version = 1;

/// As the file has it: times in nanoseconds of CLOCK_MONOTONIC.
struct Contents {
  std::int64_t version = 0;
  std::string boot;
  std::int64_t begun = 0;
  std::optional<std::int32_t> group;
  std::int64_t group_until = 0;
  std::map<std::string, std::int64_t, std::less<>> told;
  std::vector<std::string> ended;
  bool over = false;
};

Result<Contents> parse(const std::string& text, const std::string& origin) {
  const auto document = config::parse_json(text, origin);
  if (!document) return std::unexpected(document.error());
  using config::into;
  using C = Contents;
  static constexpr config::Field<C> fields[]{{"version", into<&C::version>},
                                             {"boot", into<&C::boot>},
                                             {"begun", into<&C::begun>},
                                             {"group", into<&C::group>},
                                             {"groupUntil", into<&C::group_until>},
                                             {"told", into<&C::told>},
                                             {"ended", into<&C::ended>},
                                             {"over", into<&C::over>}};
  Contents contents;
  const auto read = config::read_fields(*document, contents, fields, config::UnknownKeys::reject);
  if (!read) return std::unexpected(read.error());
  if (contents.version != version)
    return fail(fmt::format("{}: is of version {}, and version {} is known", origin, contents.version, version));
  return contents;
}

core::Instant instant(std::int64_t nanoseconds) { return core::Instant{core::Duration{nanoseconds}}; }
std::int64_t nanoseconds(core::Instant time) { return time.time_since_epoch().count(); }

core::ShutdownProgress progress_in(const Contents& contents) {
  core::ShutdownProgress progress{.begun = instant(contents.begun),
                                  .group = contents.group,
                                  .group_until = instant(contents.group_until),
                                  .ended = {contents.ended.begin(), contents.ended.end()},
                                  .over = contents.over};
  for (const auto& [uid, until] : contents.told) progress.told.emplace(uid, instant(until));
  return progress;
}

}  // namespace

ShutdownFile::ShutdownFile(std::filesystem::path file, std::filesystem::path boot_id)
    : file_{std::move(file)}, boot_{os::read_boot_id(boot_id)} {}

ShutdownFile::Found ShutdownFile::load() const {
  std::error_code error;
  if (!std::filesystem::exists(file_, error)) return {};
  const auto text = config::read_text_file(file_);
  if (!text) return {.remark = text.error().message};
  const auto contents = parse(*text, file_.native());
  if (!contents) {
    std::filesystem::rename(file_, file_.native() + ".aside", error);
    return {.remark = error
                          ? fmt::format("{}; nor can it be set aside: {}", contents.error().message, error.message())
                          : fmt::format("{}; it was set aside as {}.aside", contents.error().message, file_.native())};
  }
  // Where the boot cannot be told there is nothing to go by.
  if (boot_.empty() || contents->boot != boot_) {
    std::filesystem::remove(file_, error);
    return {.remark = fmt::format("{}: is of an earlier boot, and was removed", file_.native())};
  }
  return {.progress = progress_in(*contents)};
}

Result<void> ShutdownFile::save(const std::optional<core::ShutdownProgress>& progress) const {
  if (!progress) {
    std::error_code error;
    std::filesystem::remove(file_, error);
    if (error) return fail(fmt::format("{}: cannot be removed: {}", file_.native(), error.message()));
    return {};
  }
  json::object told;
  for (const auto& [uid, until] : progress->told) told[uid] = nanoseconds(until);
  const json::object contents{{"version", version},
                              {"boot", boot_},
                              {"begun", nanoseconds(progress->begun)},
                              {"group", progress->group ? json::value(*progress->group) : json::value()},
                              {"groupUntil", nanoseconds(progress->group_until)},
                              {"told", std::move(told)},
                              {"ended", json::array(progress->ended.begin(), progress->ended.end())},
                              {"over", progress->over}};
  return os::write_atomically(file_, json::serialize(contents) + "\n", {.durable = false});
}

}  // namespace evictd::host
