#include "events/valid_texts.hpp"

#include <set>
#include <string>
#include <vector>

#include "core/printable.hpp"

namespace evictd::events {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool is_valid(const std::string& text) { return core::valid_utf8(text) == text.size(); }

/// Of the maps there are, those to numbers have keys that are evictd's own.
bool may_hold_foreign_text(const FieldDescriptor& field) {
  if (field.is_map()) return field.message_type()->map_value()->type() == FieldDescriptor::TYPE_STRING;
  return field.type() == FieldDescriptor::TYPE_STRING || field.type() == FieldDescriptor::TYPE_MESSAGE;
}

void make_valid(Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  std::string scratch;
  const int count = field.is_repeated() ? reflection.FieldSize(message, &field) : 1;
  for (int i = 0; i < count; ++i) {
    if (field.type() == FieldDescriptor::TYPE_MESSAGE) {
      make_texts_valid(*(field.is_repeated() ? reflection.MutableRepeatedMessage(&message, &field, i)
                                             : reflection.MutableMessage(&message, &field)));
      continue;
    }
    const auto& text = field.is_repeated() ? reflection.GetRepeatedStringReference(message, &field, i, &scratch)
                                           : reflection.GetStringReference(message, &field, &scratch);
    if (is_valid(text)) continue;
    if (field.is_repeated())
      reflection.SetRepeatedString(&message, &field, i, core::printable(text));
    else
      reflection.SetString(&message, &field, core::printable(text));
  }
}

void prepare(const Descriptor& type, std::set<const Descriptor*>& known) {
  if (!known.insert(&type).second) return;
  if (const auto* prototype = google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type))
    static_cast<void>(prototype->GetReflection());
  for (int i = 0; i < type.field_count(); ++i)
    if (const auto* inner = type.field(i)->message_type()) prepare(*inner, known);
}

}  // namespace

void prepare_texts(const Descriptor& type) {
  std::set<const Descriptor*> known;
  prepare(type, known);
}

void make_texts_valid(Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const auto* field : fields)
    if (may_hold_foreign_text(*field)) make_valid(message, *field);
}

}  // namespace evictd::events
