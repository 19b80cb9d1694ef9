// What takes long to read and nearly every file of evictctl includes.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>
