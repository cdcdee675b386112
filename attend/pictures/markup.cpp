#include <glib.h>

#include <memory>

#include "attend/pictures/markup-inl.h"

namespace attend {
namespace {

std::string owned(gchar* text) {
  const std::unique_ptr<gchar, decltype(&g_free)> owner(text, g_free);
  return text;
}

}  // namespace

std::string escape_markup(std::string_view text) {
  return owned(g_markup_escape_text(text.data(), static_cast<gssize>(text.size())));
}

}  // namespace attend
