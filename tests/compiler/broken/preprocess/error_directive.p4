#ifndef VERSION
#error define VERSION
#endif
#elsif
