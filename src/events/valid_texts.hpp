#pragma once
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

namespace evictd::events {

/// Puts into each text that is not UTF-8 what stands for its bytes (core::printable). A message with such a text could
/// be sent, but it could not be read: neither by a subscriber nor from the history. Everything else stays as it
/// is. 12 µs for an eviction with a ranking of 16 pods.
void make_texts_valid(google::protobuf::Message& message);

/// Has protobuf build what that takes of messages of this type, and of all that may be in them: it does so when the
/// first one is looked at, which takes half a millisecond that the first shortage would have to wait for.
void prepare_texts(const google::protobuf::Descriptor& type);

}  // namespace evictd::events
