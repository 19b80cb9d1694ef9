#include "testbed/testbed.hpp"

#include "testbed/leftovers.hpp"

namespace testbed {

namespace {

NodeCgroup::Options after_sweep(NodeCgroup::Options options) {
  remove_leftovers();
  return options;
}

}  // namespace

Testbed::Testbed(const Options& options)
    : node_(after_sweep(options.node)), containerd_(options.containerd), cri_(containerd_.socket(), node_) {
  if (options.start_containerd) containerd_.start();
}

}  // namespace testbed
