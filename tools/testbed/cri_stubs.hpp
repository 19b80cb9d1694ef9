#pragma once
#include <memory>

#include "api.grpc.pb.h"
#include "testbed/channel.hpp"

namespace testbed {

/// What Cri makes its calls by: `call(*cri.stubs().runtime, …)`.
struct CriStubs {
  std::unique_ptr<runtime::v1::RuntimeService::Stub> runtime;
  std::unique_ptr<runtime::v1::ImageService::Stub> images;
};

}  // namespace testbed
