// What libibverbs and a provider say to each other and no development package declares: structures and
// function names of rdma-core's libibverbs/driver.h, version 44 (private ABI 34) and later. The table of
// operations differs between versions; operations.cpp finds out which one is there before it is used.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

extern "C" {

struct verbs_sysfs_dev;

struct verbs_match_ent {
  void* driver_data;
  union {
    const char* modalias;
    uint64_t driver_id;
  } u;
  uint16_t vendor;
  uint16_t device;
  uint8_t kind;
};

struct verbs_device {
  struct ibv_device device;
  const struct verbs_device_ops* ops;
  int refcount;
  void* entry[2];
  struct verbs_sysfs_dev* sysfs;
  uint64_t core_support;
};

struct verbs_device_ops {
  const char* name;
  uint32_t match_min_abi_version;
  uint32_t match_max_abi_version;
  const struct verbs_match_ent* match_table;
  const struct verbs_device_ops** static_providers;
  bool (*match_device)(struct verbs_sysfs_dev* sysfs_dev);
  struct verbs_context* (*alloc_context)(struct ibv_device* device, int cmd_fd, void* private_data);
  struct verbs_context* (*import_context)(struct ibv_device* device, int cmd_fd);
  struct verbs_device* (*alloc_device)(struct verbs_sysfs_dev* sysfs_dev);
  void (*uninit_device)(struct verbs_device* device);
};

struct verbs_mr {
  struct ibv_mr ibv_mr;
  int mr_type;
  int access;
};

struct verbs_qp {
  union {
    struct ibv_qp qp;
    struct ibv_qp_ex qp_ex;
  };
  uint32_t comp_mask;
  void* xrcd;
};

struct verbs_srq {
  struct ibv_srq srq;
  int srq_type;
  void* xrcd;
  struct ibv_cq* cq;
  uint32_t srq_num;
};

}  // extern "C"

namespace weft::verbs {

constexpr uint8_t kMatchModalias = 2;       // VERBS_MATCH_MODALIAS
constexpr uint32_t kQueuePairExtended = 2;  // VERBS_QP_EX
constexpr uint32_t kDriverUnknown = 0;      // RDMA_DRIVER_UNKNOWN

// Private functions of a libibverbs that this process has loaded; null if one is missing.
struct Library {
  void (*register_driver)(const verbs_device_ops*);
  void* (*init_and_alloc_context)(ibv_device*, int, size_t, verbs_context*, uint32_t);
  void (*uninit_context)(verbs_context*);
  void (*set_ops)(verbs_context*, const void*);
  verbs_device_ops device;  // under which the provider is registered there
  int table;                // of operations, kUnknownTable until a device is opened
};
constexpr int kUnknownTable = -2;
// The one through which a device was found.
Library& library_of(const ibv_device* device);

}  // namespace weft::verbs
