#pragma once
#include <grpcpp/support/string_ref.h>

#include <map>

namespace evictd::proxy {

/// A call's metadata as gRPC hands it out: several values may have one key, and keep their order.
using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

/// Whether a pair of a received call's metadata is passed on. Not what belongs to one connection (gRPC writes its own
/// user-agent), not the status' details, which go with the status, and not what gRPC would abort the process for if it
/// were asked to send it: HTTP/2 lets a peer send values that gRPC does not allow.
[[nodiscard]] bool passes(grpc::string_ref key, grpc::string_ref value);

}  // namespace evictd::proxy
