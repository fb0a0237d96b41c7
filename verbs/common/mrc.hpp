// What libmrc asks of the provider that has opened a device: queue pairs of MRC, and the NIC's requests.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "verbs/protocol.hpp"

namespace weft::verbs {

// Attributes of MRC, of a request or of an answer, where they come last.
struct MrcFields {
  uint64_t mrc_mask = 0;
  uint64_t WEFT_VERBS_MRC_ATTRIBUTES;
};

struct MrcProvider {
  // As those of libibverbs. Work and completions pass through libibverbs' own functions.
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int mask, const MrcFields&);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, ibv_qp_init_attr*, MrcFields&);
  // Carries out a request that has no descriptors. Result: 0 or an errno.
  int (*ask)(ibv_context*, uint32_t operation, const void* question, size_t question_bytes, void* answer,
             size_t answer_bytes);
};

// The provider's structure, by name.
constexpr const char* kMrcProvider = "weft_mrc_provider";

}  // namespace weft::verbs
