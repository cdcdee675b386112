#pragma once

#include <string>

#include "attend/pictures/theme-inl.h"

namespace attend {

// A disc that covers what is below it, coloured as strongly as its weight is large beside the
// largest, and not at all where that is no finite number above 0. Its tip tells the label and the
// weight. Takes the rules below.
std::string weight_disc(double x, double y, double radius, double weight, double largest,
                        const std::string& label);

std::string weight_disc_rules(Scheme scheme);

}  // namespace attend
