#pragma once

#include <vector>

#include "attend/explain/shown.h"
#include "attend/explain/similarity.h"
#include "attend/pictures/map_page.h"

namespace attend {

// Returns the map of the parts, with the first text along the top. `card`: the evidence; may be
// empty.
Shown shown_similarity(const SimilarityParts& explained, const std::vector<EvidenceFigure>& card);

// Returns a page with this map.
ExplanationPage similarity_page(const SimilarityParts& explained,
                                const std::vector<EvidenceFigure>& card);

}  // namespace attend
