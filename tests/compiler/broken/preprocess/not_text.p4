// The included file is not UTF-8.
#include "not_text.inc"
