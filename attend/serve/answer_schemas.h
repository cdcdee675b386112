#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attend {

// JSON schemas of what the routes answer, by the names that Route::schema has, and of errors.
nlohmann::json answer_schemas();

// {"$ref"}: the schema of that name among the components of the document.
nlohmann::json schema_reference(const std::string& name);

}  // namespace attend
