// Directives that lack what they are about.
#define
#define 3
#define two(a, b
#include nothing
#ifdef
#endif
#if defined(
#endif
#if 1 +
#endif
#else
#endif
#elif 1
#unknown directive
# unknown text is a comment
#define join(a, b) a ## b
const bit<8> open = join(1, 2
