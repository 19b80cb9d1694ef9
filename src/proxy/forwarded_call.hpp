#pragma once
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>

#include "proxy/running_calls.hpp"

namespace evictd::proxy {

class Gate;

/// Passes one call of whatever method and kind on to the runtime, and what comes back to the client: messages as the
/// bytes they are, metadata, deadline, cancellation, half-close, and status with its details. What it returns belongs
/// to gRPC, and holds the ticket for as long as it is there. A call that starts a pod or a container waits at the gate
/// first.
///
/// A client that cancels while it may still send is half-closed towards the runtime for a moment, since gRPC may tell
/// of the end of its messages first. CRI has no such call: there a client sends one message.
///
/// In each direction one message is on its way at a time: the next is read only once gRPC has taken it, so that whoever
/// does not read makes the other side wait and not this process grow.
[[nodiscard]] grpc::ServerGenericBidiReactor* forward(grpc::GenericCallbackServerContext& client,
                                                      grpc::GenericStub& runtime, Gate& gate,
                                                      RunningCalls::Ticket ticket);

}  // namespace evictd::proxy
