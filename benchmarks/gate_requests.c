/* Valgrind's requests as functions that Python can call. Without valgrind they do nothing. */
#include <valgrind/callgrind.h>

void start_counting(void) { CALLGRIND_START_INSTRUMENTATION; }

void stop_counting(void) { CALLGRIND_STOP_INSTRUMENTATION; }
