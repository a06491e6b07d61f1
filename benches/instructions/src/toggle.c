#include <valgrind/callgrind.h>

/* Callgrind begins to count on the calling thread, or ends. Does nothing outside of valgrind. */
void toggle_collect(void) {
    CALLGRIND_TOGGLE_COLLECT;
}
