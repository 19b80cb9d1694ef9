#pragma once
#include <pthread.h>

namespace evictd::async {

/// Has ps(1) and top(1) show this thread by the name, of at most 15 characters.
inline void name_this_thread(const char* name) { ::pthread_setname_np(::pthread_self(), name); }

}  // namespace evictd::async
