// The fabric's own program; the script forges aggregation packets.
#include "../../../p4/fabric.p4"
