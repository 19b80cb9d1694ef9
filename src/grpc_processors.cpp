/// gRPC keeps two lists of timers for each processor that it believes in, and a thread that looks at each list once a
/// second whether there is a timer or not (gRPC 1.51: timer_generic.cc, event_engine/posix_engine/timer.cc). evictd has
/// a handful of timers there, and on a node of 64 processors would wake as many times a second for nothing. No option
/// says otherwise; but both of these are public functions of a shared library, and the program's own come first.
#include <grpc/support/cpu.h>

extern "C" {

unsigned gpr_cpu_num_cores() { return 1; }

/// Below the number above, as gRPC takes for granted.
unsigned gpr_cpu_current_cpu() { return 0; }
}
