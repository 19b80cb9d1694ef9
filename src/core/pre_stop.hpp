#pragma once
#include <chrono>
#include <string>
#include <variant>
#include <vector>

// What a container's spec has done before the container is told to stop: lifecycle.preStop.
namespace evictd::core {

/// A command in the container, without a shell.
struct ExecHook {
  std::vector<std::string> command;  ///< never empty

  friend bool operator==(const ExecHook&, const ExecHook&) = default;
};

struct HttpHeader {
  std::string name;
  std::string value;

  friend bool operator==(const HttpHeader&, const HttpHeader&) = default;
};

/// A GET of some server's, as the spec writes it: nothing of it has been checked.
struct HttpGetHook {
  bool https = false;
  std::string host{};  ///< a name or an address; empty: the pod's own address
  std::string port{};  ///< its number; a name where the container has no port of that name
  std::string path{};  ///< with its query; "" is "/"
  std::vector<HttpHeader> headers{};

  friend bool operator==(const HttpGetHook&, const HttpGetHook&) = default;
};

struct SleepHook {
  std::chrono::seconds time{};

  friend bool operator==(const SleepHook&, const SleepHook&) = default;
};

using PreStop = std::variant<ExecHook, HttpGetHook, SleepHook>;

}  // namespace evictd::core
