#pragma once

namespace node_suite {

/// Has the node's containerd know the images that the tests' pods run; nothing is done where it knows them.
void import_images();

}  // namespace node_suite
