#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace attend {

// Reads a pickle of Python (protocols 2 to 5) as data; nothing in it is executed. Texts, numbers,
// booleans, None, lists and tuples become the JSON of the same kind, dictionaries objects, with
// whole numbers as keys written out. An object of any class becomes an object with its attributes
// and, for a class derived from dict, its entries; the arguments that made it are left aside.
//
// Error, naming the file, if it is cut off, nested over 64 levels deep, refers to itself, holds
// over 1,000,000 values and bytes of texts, or uses other instructions.
nlohmann::json parse_pickle(std::string_view bytes, const std::string& name);

}  // namespace attend
