// The fabric's own program; the script sends packets whose TTL expires.
#include "../../../p4/fabric.p4"
