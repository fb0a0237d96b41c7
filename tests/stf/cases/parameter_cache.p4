// The fabric's own program with a parameter cache; the script has the leaf of a store.
#define SERVICE_PARAMETER_CACHE
#include "../../../p4/fabric.p4"
