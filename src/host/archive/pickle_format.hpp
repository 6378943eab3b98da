#pragma once

#include <cstdint>

namespace yoke::archive::pickle {

/// The opcodes of pickle protocol 2 that torch.save writes; PyTorch's safe reader takes these and
/// few more.
enum class Op : std::uint8_t {
  proto = 0x80,
  stop = '.',
  mark = '(',
  none = 'N',
  new_true = 0x88,
  new_false = 0x89,
  binint = 'J',      // int32
  binint1 = 'K',     // uint8
  binint2 = 'M',     // uint16
  long1 = 0x8A,      // count, then two's complement
  binfloat = 'G',    // big-endian
  binunicode = 'X',  // uint32 count, then UTF-8
  empty_tuple = ')',
  tuple1 = 0x85,
  tuple2 = 0x86,
  tuple3 = 0x87,
  tuple = 't',
  empty_list = ']',
  append = 'a',
  appends = 'e',
  empty_dict = '}',
  setitem = 's',
  setitems = 'u',
  global = 'c',  // module line, name line
  reduce = 'R',
  newobj = 0x81,
  build = 'b',
  binpersid = 'Q',
  binput = 'q',
  long_binput = 'r',
  binget = 'h',
  long_binget = 'j',
};

inline constexpr int kProtocol = 2;

}  // namespace yoke::archive::pickle
