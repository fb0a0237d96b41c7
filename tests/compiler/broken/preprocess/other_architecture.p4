// Programs for other architectures than v1model.
#include <core.p4>
#include <psa.p4>
#include <tna.p4>
