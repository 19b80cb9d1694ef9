#pragma once
#include <grpcpp/support/byte_buffer.h>

#include <optional>
#include <string>
#include <string_view>

namespace evictd::v1 {
class AdmitResponse;
}

namespace evictd::proxy {

/// What the agent's answer says that the container must be given to have its devices, as a serialized
/// CreateContainerRequest with nothing else in it; "": nothing.
[[nodiscard]] std::string device_additions(const v1::AdmitResponse& response, std::string_view container);

/// The request with the additions: they stand before the bytes that the client sent, which stay as they are. Protobuf
/// merges the two: lists have the additions first, and of two values for one key the client's counts. So a variable, a
/// mount or an annotation of the pod's own overrides a plugin's, as with a kubelet. Absent: the message has no bytes to
/// look at.
[[nodiscard]] std::optional<grpc::ByteBuffer> with_additions(const std::string& additions,
                                                             const grpc::ByteBuffer& request);

}  // namespace evictd::proxy
