// A device that the distribution's libibverbs lists. Opening it is refused: no NIC process answers yet.

#include <infiniband/verbs.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

// The library's private structures are in no development package. These are as rdma-core's
// libibverbs/driver.h has them for private ABIs 34 to 64, up to the members that are used here.
namespace {

struct ListNode {
  ListNode *next, *previous;
};

struct MatchEntry {
  const void* driver_data;
  union {
    const char* modalias;
    uint64_t driver_id;
  } name;
  uint16_t vendor;
  uint16_t device;
  uint8_t kind;
};

constexpr uint8_t kSentinel = 0, kModalias = 2;

struct VerbsDevice {
  ibv_device device;
  const void* operations;
  int references;
  ListNode entry;
  void* sysfs;
  uint64_t core_support;
};

struct DeviceOperations {
  const char* name;
  uint32_t least_abi_version, most_abi_version;
  const MatchEntry* match_table;
  const DeviceOperations** static_providers;
  bool (*match_device)(void* sysfs);
  void* (*alloc_context)(ibv_device* device, int command_fd, void* private_data);
  void* (*import_context)(ibv_device* device, int command_fd);
  VerbsDevice* (*alloc_device)(void* sysfs);
  void (*uninit_device)(VerbsDevice* device);
};

const MatchEntry kMatches[] = {
    {nullptr, {"weft:*"}, 0, 0, kModalias},
    {nullptr, {nullptr}, 0, 0, kSentinel},
};

void* refuse_context(ibv_device*, int, void*) {
  errno = EOPNOTSUPP;
  return nullptr;
}

VerbsDevice* allocate_device(void*) { return static_cast<VerbsDevice*>(std::calloc(1, sizeof(VerbsDevice))); }

void free_device(VerbsDevice* device) { std::free(device); }

const DeviceOperations kOperations = {
    "weft", 1, 1, kMatches, nullptr, nullptr, refuse_context, nullptr, allocate_device, free_device,
};

}  // namespace

#define WEFT_JOINED(name, number) name##number
#define WEFT_REGISTER(number) WEFT_JOINED(verbs_register_driver_, number)

extern "C" void WEFT_REGISTER(WEFT_PRIVATE_ABI)(const void* operations);

__attribute__((constructor)) static void register_provider() {
  WEFT_REGISTER(WEFT_PRIVATE_ABI)(&kOperations);
}
