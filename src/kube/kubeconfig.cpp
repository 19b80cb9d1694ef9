#include <fmt/format.h>
#include <openssl/evp.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "config/yaml.hpp"
#include "core/error.hpp"
#include "kube/credentials.hpp"
#include "kube/url.hpp"

namespace evictd::kube {
namespace {

using config::Value;
namespace fs = std::filesystem;

/// What a key does with its value.
using Take = std::function<Result<void>(const Value&)>;
using Keys = std::map<std::string_view, Take>;

Result<void> ignore(const Value&) { return {}; }

/// Hands each entry to its key. A key that is not among them is an error with what `unknown` says.
Result<void> take_entries(const Value& mapping, const Keys& keys, std::string_view unknown) {
  const auto entries = mapping.entries();
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [key, value] : *entries) {
    if (value.is_null()) continue;
    const auto take = keys.find(key);
    if (take == keys.end()) return std::unexpected(value.error(unknown));
    if (const auto taken = take->second(value); !taken) return taken;
  }
  return {};
}

Take into(std::string& target) {
  return [&target](const Value& value) -> Result<void> {
    auto text = value.text();
    if (!text) return std::unexpected(text.error());
    target = *std::move(text);
    return {};
  };
}

/// Standard base64 with line breaks anywhere, as Go decodes it.
std::optional<std::string> decode_base64(std::string_view text) {
  const std::unique_ptr<EVP_ENCODE_CTX, decltype(&EVP_ENCODE_CTX_free)> context{EVP_ENCODE_CTX_new(),
                                                                                &EVP_ENCODE_CTX_free};
  std::string decoded(text.size() / 4 * 3 + 64, '\0');
  auto* out = reinterpret_cast<unsigned char*>(decoded.data());
  int length = 0;
  int rest = 0;
  EVP_DecodeInit(context.get());
  if (EVP_DecodeUpdate(context.get(), out, &length, reinterpret_cast<const unsigned char*>(text.data()),
                       static_cast<int>(text.size())) < 0 ||
      EVP_DecodeFinal(context.get(), out + length, &rest) < 0)
    return std::nullopt;
  decoded.resize(static_cast<std::size_t>(length) + static_cast<std::size_t>(rest));
  return decoded;
}

Take into_decoded(std::string& target) {
  return [&target](const Value& value) -> Result<void> {
    const auto text = value.text();
    if (!text) return std::unexpected(text.error());
    auto decoded = decode_base64(*text);
    if (!decoded || decoded->empty()) return std::unexpected(value.error("is not base64"));
    target = *std::move(decoded);
    return {};
  };
}

Take into_path(fs::path& target, const fs::path& directory) {
  return [&target, directory](const Value& value) -> Result<void> {
    const auto text = value.text();
    if (!text) return std::unexpected(text.error());
    target = directory / *text;
    return {};
  };
}

/// False is what we do anyway.
Result<void> only_false(const Value& value) {
  const auto flag = value.boolean();
  if (!flag) return std::unexpected(flag.error());
  if (*flag) return std::unexpected(value.error("is not supported: the server's certificate is always checked"));
  return {};
}

Result<void> read_cluster(const Value& cluster, const fs::path& directory, Credentials& credentials) {
  auto& authorities = credentials.authorities;
  const Keys keys{
      {"server",
       [&](const Value& value) -> Result<void> {
         const auto text = value.text();
         if (!text) return std::unexpected(text.error());
         auto server = parse_url(*text);
         if (!server) return std::unexpected(value.error(server.error()));
         credentials.server = *std::move(server);
         return {};
       }},
      {"certificate-authority", into_path(authorities.file, directory)},
      {"certificate-authority-data", into_decoded(authorities.text)},
      {"tls-server-name", into(credentials.tls_server_name)},
      {"insecure-skip-tls-verify", only_false},
      {"disable-compression", ignore},  // evictd asks for none
      {"extensions", ignore},
  };
  if (const auto taken = take_entries(cluster, keys, "is not supported by evictd"); !taken) return taken;
  if (credentials.server.host.empty()) return std::unexpected(cluster.error("has no server"));
  if (!authorities.text.empty()) authorities.file.clear();
  return {};
}

Result<void> read_user(const Value& user, const fs::path& directory, Credentials& credentials) {
  auto& token = credentials.token;
  auto& certificate = credentials.client_certificate;
  auto& key = credentials.client_key;
  const Keys keys{
      {"token", into(token.text)},
      {"tokenFile", into_path(token.file, directory)},
      {"client-certificate", into_path(certificate.file, directory)},
      {"client-certificate-data", into_decoded(certificate.text)},
      {"client-key", into_path(key.file, directory)},
      {"client-key-data", into_decoded(key.text)},
      {"extensions", ignore},
  };
  if (const auto taken =
          take_entries(user, keys, "is not supported by evictd: use a token, a token file or a client certificate");
      !taken)
    return taken;
  for (auto* material : {&certificate, &key})
    if (!material->text.empty()) material->file.clear();
  return {};
}

/// The `key` of the item of a list of {name: NAME, KEY: …}; the first of that name, as client-go takes it.
Result<Value> find_named(const Value& list, std::string_view name, std::string_view key) {
  const auto items = list.items();
  if (!items) return std::unexpected(items.error());
  for (const auto& item : *items) {
    const auto entries = item.entries();
    if (!entries) return std::unexpected(entries.error());
    const Value* found = nullptr;
    bool is_named = false;
    for (const auto& entry : *entries) {
      if (entry.key == key) found = &entry.value;
      if (entry.key != "name") continue;
      const auto text = entry.value.text();
      if (!text) return std::unexpected(text.error());
      is_named = *text == name;
    }
    if (!is_named) continue;
    if (found == nullptr || found->is_null()) return std::unexpected(item.error(fmt::format("has no {}", key)));
    return *found;
  }
  return std::unexpected(list.error(fmt::format("none of them is called \"{}\"", name)));
}

/// The lists of a kubeconfig, and the name of the chosen context.
struct Document {
  std::map<std::string, Value, std::less<>> lists;
  std::string current;

  [[nodiscard]] Result<Value> find(const Value& root, std::string_view list, std::string_view name,
                                   std::string_view key) const {
    const auto found = lists.find(list);
    if (found == lists.end()) return std::unexpected(root.error(fmt::format("{} is missing", list)));
    return find_named(found->second, name, key);
  }
};

Result<Document> read_document(const Value& root) {
  Document document;
  const auto entries = root.entries();
  if (!entries) return std::unexpected(entries.error());
  for (const auto& [key, value] : *entries) {
    if (value.is_null()) continue;
    if (key == "clusters" || key == "contexts" || key == "users") document.lists.emplace(key, value);
    if (key != "current-context") continue;
    auto text = value.text();
    if (!text) return std::unexpected(text.error());
    document.current = *std::move(text);
  }
  if (document.current.empty()) return std::unexpected(root.error("current-context is missing"));
  return document;
}

struct Context {
  std::string cluster;
  std::string user;
  std::string name_space;
};

Result<Context> read_context(const Value& value) {
  Context context;
  const Keys keys{{"cluster", into(context.cluster)},
                  {"user", into(context.user)},
                  {"namespace", into(context.name_space)},
                  {"extensions", ignore}};
  if (const auto taken = take_entries(value, keys, "is no key of a context"); !taken)
    return std::unexpected(taken.error());
  if (context.cluster.empty()) return std::unexpected(value.error("has no cluster"));
  return context;
}

}  // namespace

Result<Credentials> kubeconfig_credentials(const fs::path& path) {
  const auto text = config::read_text_file(path);
  if (!text) return std::unexpected(text.error());
  const auto root = config::parse_yaml(*text, path.string());
  if (!root) return std::unexpected(root.error());
  if (const auto header = config::check_header(*root, "v1", "Config"); !header) return std::unexpected(header.error());
  const auto document = read_document(*root);
  if (!document) return std::unexpected(document.error());

  const auto context_value = document->find(*root, "contexts", document->current, "context");
  if (!context_value) return std::unexpected(context_value.error());
  auto context = read_context(*context_value);
  if (!context) return std::unexpected(context.error());

  Credentials credentials;
  credentials.name_space = std::move(context->name_space);
  const auto directory = path.parent_path();
  const auto cluster = document->find(*root, "clusters", context->cluster, "cluster");
  if (!cluster) return std::unexpected(cluster.error());
  if (const auto read = read_cluster(*cluster, directory, credentials); !read) return std::unexpected(read.error());
  if (!context->user.empty()) {
    const auto user = document->find(*root, "users", context->user, "user");
    if (!user) return std::unexpected(user.error());
    if (const auto read = read_user(*user, directory, credentials); !read) return std::unexpected(read.error());
  }
  if (const auto checked = check(credentials); !checked) return fail(checked.error(), path.string());
  return credentials;
}

}  // namespace evictd::kube
