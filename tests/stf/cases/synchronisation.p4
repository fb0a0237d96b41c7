// The fabric's own program with barriers and counters; the script has a leaf's part in two groups.
#define SERVICE_SYNCHRONISATION
#include "../../../p4/fabric.p4"
