#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace attend {

// The datasets of an HDF5 file as h5py writes them by default
// (https://docs.hdfgroup.org/documentation/hdf5/latest/_f_m_t3.html): version 0 or 1 of the
// superblock, groups with symbol tables, little-endian numbers stored in one piece. Attributes are
// left aside.
class Hdf5File {
 public:
  // Reads the groups. Strict: every address and size lies in the file, groups form a tree at most
  // 32 deep, at most 100,000 objects. Otherwise Error, naming the file.
  static Hdf5File parse(std::string bytes, const std::string& name);

  // Paths of the datasets, such as "layers/dense/vars/0", in alphabetical order.
  std::vector<std::string> names() const;
  // Returns a dataset as a tensor of its shape. Error, naming the dataset, if there is none, and if
  // it is stored in chunks or by filters, without data, or not as float64, float32, float16, int64,
  // int32 or uint8.
  at::Tensor tensor(const std::string& dataset) const;

 private:
  std::string name_;
  std::string bytes_;
  std::map<std::string, uint64_t> headers_;  // address of the object header by path
};

}  // namespace attend
