#include "attend/explain/explanation_markdown.h"

#include <fmt/format.h>

#include "attend/explain/evidence.h"
#include "attend/explain/methods.h"
#include "attend/explain/similarity.h"
#include "attend/pictures/markdown.h"

namespace attend {
namespace {

std::string figures_markdown(const std::vector<FigureRow>& rows) {
  std::string text =
      "\n"
      "| figure | measures | passes if | paper |\n"
      "|---|---|---|---|\n";
  for (const FigureRow& row : rows)
    text +=
        fmt::format("| {} | {} | {} | {} |\n", markdown_code(row.name), markdown_cell(row.meaning),
                    *row.bar == 0 ? "no accepted bar" : row.bar, row.paper);
  return text;
}

}  // namespace

std::string explanation_markdown() {
  std::string text =
      "| method | formula | meaning for a token | paper | cost |\n"
      "|---|---|---|---|---|\n";
  for (const MethodRow& row : method_table())
    text +=
        fmt::format("| {} | {} | {} | {} | {} |\n", markdown_code(row.name),
                    markdown_code(row.formula), markdown_cell(row.meaning), row.paper, row.cost);
  return text + figures_markdown(figure_table()) + figures_markdown(similarity_figure_table());
}

}  // namespace attend
