#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attend/pictures/markup-inl.h"
#include "attend/pictures/weight_disc-inl.h"

namespace attend {

std::string weight_disc(double x, double y, double radius, double weight, double largest,
                        const std::string& label) {
  const double strength =
      largest > 0 && std::isfinite(weight) ? std::max(weight / largest, 0.0) : 0;
  return fmt::format(
      "<circle class=\"page line\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"{2:g}\"/>"
      "<circle class=\"mark\" fill-opacity=\"{3:.3f}\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"{2:g}\">"
      "<title>{4}: {5:.3g}</title></circle>",
      x, y, radius, strength, escape_markup(label), weight);
}

std::string weight_disc_rules(Scheme scheme) {
  return fmt::format(".mark{{fill:{}}}",
                     hex(scale_color(scheme == Scheme::light ? 0.55 : 0.5, scheme)));
}

}  // namespace attend
