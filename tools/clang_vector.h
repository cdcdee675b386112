// tools/tidy.py and the preset `fuzz` include this before a file that includes LibTorch. In C++20
// clang instantiates a vector's constexpr members at once, but LibTorch 1.13 has inline functions
// with vectors of a type that is not complete yet. So the vector loses its constexpr here, and with
// it the filling of vector<bool>, which <string> has declared as constexpr before.
#include <memory>
#include <string>

#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 __fill_a1_of_bits
#include <vector>
#undef __fill_a1
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR constexpr
