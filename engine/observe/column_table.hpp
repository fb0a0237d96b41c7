// Records in columns of int64, for NumPy to take over as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace weft {

class ColumnTable {
 public:
  using Columns = std::vector<std::vector<int64_t>>;

  // Rows beyond the limit are counted and not kept.
  ColumnTable(std::vector<std::string> names, size_t row_limit)
      : names_(std::move(names)), row_limit_(row_limit), columns_(names_.size()) {}

  // One value per column, in their order.
  void append(std::initializer_list<int64_t> row) {
    if (columns_.front().size() >= row_limit_) [[unlikely]] {
      ++rows_lost_;
      return;
    }
    auto column = columns_.begin();
    for (const int64_t value : row) (column++)->push_back(value);
  }

  const std::vector<std::string>& names() const { return names_; }
  size_t rows() const { return columns_.front().size(); }
  uint64_t rows_lost() const { return rows_lost_; }
  // Hands the columns over and begins anew.
  Columns take() { return std::exchange(columns_, Columns(names_.size())); }

 private:
  std::vector<std::string> names_;
  size_t row_limit_;
  uint64_t rows_lost_ = 0;
  Columns columns_;
};

}  // namespace weft
