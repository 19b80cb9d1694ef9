#pragma once
#include <filesystem>
#include <optional>
#include <string_view>

namespace testbed {

/// The programs under test and the pods' payload, as this build made them. An environment variable of the given name
/// points elsewhere.
[[nodiscard]] std::filesystem::path evictd_program();    ///< EVICTD_PROGRAM
[[nodiscard]] std::filesystem::path crashing_evictd();   ///< EVICTD_CRASHING_PROGRAM; see tests/integration
[[nodiscard]] std::filesystem::path evictctl_program();  ///< EVICTCTL_PROGRAM
[[nodiscard]] std::filesystem::path bench_program();     ///< EVICTD_BENCH_PROGRAM
[[nodiscard]] std::filesystem::path demo_program();      ///< EVICTD_DEMO_PROGRAM
[[nodiscard]] std::filesystem::path load_program();      ///< EVICTD_LOAD_PROGRAM

/// What pods are run with, a name in PATH: runc, or the crun that EVICTD_TEST_OCI_RUNTIME asks for.
[[nodiscard]] std::filesystem::path oci_runtime();

/// Where PATH has a program of this name.
[[nodiscard]] std::optional<std::filesystem::path> find_program(std::string_view name);

}  // namespace testbed
