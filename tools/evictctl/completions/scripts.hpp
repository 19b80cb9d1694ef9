#pragma once
#include <map>
#include <string>
#include <string_view>

namespace evictd::ctl {

/// The files of this folder, by the names of their shells. They ask the program itself what may follow, so they are
/// never behind it. Its answer has a word and its meaning on each line, with a tab between; ":files" says that a file
/// is wanted. They run what PATH has, and not what is being typed, which nobody has decided to run yet.
extern const std::map<std::string, std::string_view> completion_scripts;

}  // namespace evictd::ctl
