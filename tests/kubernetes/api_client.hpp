#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kubernetes {

/// What the API server said.
struct Answer {
  int status = 0;  ///< HTTP's
  std::string body;

  /// What stands there in the body, by JSON pointer ("/status/phase"): a string's text, everything else as JSON.
  /// Nothing where the body is no JSON or has no such place.
  [[nodiscard]] std::optional<std::string> find(std::string_view pointer) const;
  /// The same, "" instead of nothing.
  [[nodiscard]] std::string at(std::string_view pointer) const { return find(pointer).value_or(""); }
  /// The number of elements of the array there; 0 where there is none.
  [[nodiscard]] std::size_t size(std::string_view pointer) const;
};

/// Somebody who talks to the API server, by the program curl: it shares nothing with the client under test.
class ApiClient {
 public:
  struct Request {
    std::string method = "GET";
    std::string path;  ///< with the query: "/api/v1/pods?limit=1"
    std::string body{};
    std::string content_type{};
  };

  /// `server` is "https://127.0.0.1:1234"; `scratch` an existing directory for bodies.
  ApiClient(std::string server, std::filesystem::path authority, std::string token, std::filesystem::path scratch);

  /// Fails when there is no answer; any status is one.
  [[nodiscard]] Answer send(const Request& request) const;
  /// Nothing when there is no answer.
  [[nodiscard]] std::optional<Answer> try_send(const Request& request) const;

  [[nodiscard]] Answer get(const std::string& path) const { return send({.path = path}); }
  /// `object` is YAML, of which JSON is a part.
  [[nodiscard]] Answer create(const std::string& path, const std::string& object) const;
  /// `patch` is a JSON merge patch, or of the kind that is named.
  [[nodiscard]] Answer patch(const std::string& path, const std::string& patch,
                             const std::string& content_type = "application/merge-patch+json") const;
  [[nodiscard]] Answer remove(const std::string& path) const { return send({.method = "DELETE", .path = path}); }

  [[nodiscard]] const std::string& token() const { return token_; }

 private:
  [[nodiscard]] std::vector<std::string> command(const Request& request) const;
  [[nodiscard]] std::optional<Answer> ask(const Request& request, std::string& error) const;

  std::string server_;
  std::filesystem::path authority_;
  std::string token_;
  std::filesystem::path scratch_;
};

/// Fails, quoting the body, unless the status is 2xx; otherwise gives the answer back.
Answer expect_success(Answer answer);

}  // namespace kubernetes
