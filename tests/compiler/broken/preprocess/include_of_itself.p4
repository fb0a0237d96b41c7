// Files that include each other without end.
#include "include_of_itself.p4"
