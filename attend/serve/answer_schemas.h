#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attend {

// JSON schemas of the routes' answers, by the names in Route::schema, and of errors.
nlohmann::json answer_schemas();

// Reference ({"$ref"}) to the schema of that name in the components of the document.
nlohmann::json schema_reference(const std::string& name);

}  // namespace attend
