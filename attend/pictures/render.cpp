#include "attend/pictures/render.h"

#include <librsvg/rsvg.h>

#include <cmath>
#include <memory>
#include <new>

#include "attend/base/error.h"

namespace attend {
namespace {

constexpr int kMaximumSide = 32'000;  // cairo's image surfaces end at 32,767
constexpr double kMaximumPixels = 1 << 26;

template <auto release>
struct Release {
  void operator()(auto* object) const { release(object); }
};
using Handle = std::unique_ptr<RsvgHandle, Release<g_object_unref>>;
using Stream = std::unique_ptr<GInputStream, Release<g_object_unref>>;
using Surface = std::unique_ptr<cairo_surface_t, Release<cairo_surface_destroy>>;
using Context = std::unique_ptr<cairo_t, Release<cairo_destroy>>;

[[noreturn]] void fail_with(GError* error) {
  const std::unique_ptr<GError, Release<g_error_free>> owner(error);
  fail("[render_png] {}", error != nullptr ? error->message : "librsvg failed without a reason");
}

void check_status(cairo_status_t status) {
  if (status == CAIRO_STATUS_NO_MEMORY) throw std::bad_alloc();
  if (status != CAIRO_STATUS_SUCCESS) fail("[render_png] {}", cairo_status_to_string(status));
}

// Large maps exceed the XML parser's limit of 10 MB. Lifting it also disables the guard against
// entities that expand without end, so documents that could declare entities are refused.
Handle parse(const std::string& svg) {
  if (svg.find("<!DOCTYPE") != svg.npos) {
    fail("[render_png] the SVG has a document type declaration; remove it");
  }
  const Stream stream(
      g_memory_input_stream_new_from_data(svg.data(), static_cast<gssize>(svg.size()), nullptr));
  GError* error = nullptr;
  Handle handle(rsvg_handle_new_from_stream_sync(stream.get(), nullptr, RSVG_HANDLE_FLAG_UNLIMITED,
                                                 nullptr, &error));
  if (!handle) fail_with(error);
  return handle;
}

struct Size {
  double width, height;
};

Size picture_size(RsvgHandle* handle, double scale) {
  double width = 0;
  double height = 0;
  if (!rsvg_handle_get_intrinsic_size_in_pixels(handle, &width, &height)) {
    fail("[render_png] the SVG has no size in pixels; give its root element width and height");
  }
  const Size size{std::ceil(width * scale), std::ceil(height * scale)};
  if (!(size.width >= 1 && size.height >= 1)) {
    fail("[render_png] the SVG is {} x {} pixels; nothing to draw", width, height);
  }
  if (!(size.width <= kMaximumSide && size.height <= kMaximumSide &&
        size.width * size.height <= kMaximumPixels)) {
    fail(
        "[render_png] {} x {} pixels at scale {} are too many (at most {} a side, {} in all); "
        "lower the scale or keep the SVG",
        width, height, scale, kMaximumSide, kMaximumPixels);
  }
  return size;
}

cairo_status_t append_bytes(void* bytes, const unsigned char* data, unsigned int length) try {
  static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
} catch (const std::bad_alloc&) {
  return CAIRO_STATUS_NO_MEMORY;
}

}  // namespace

std::string render_png(const std::string& svg, double scale) {
  if (!(scale > 0 && scale <= 16)) fail("[render_png] scale is {}; it must be in (0, 16]", scale);
  GError* error = nullptr;
  const Handle handle = parse(svg);
  const Size size = picture_size(handle.get(), scale);

  const Surface surface(cairo_image_surface_create(
      CAIRO_FORMAT_ARGB32, static_cast<int>(size.width), static_cast<int>(size.height)));
  check_status(cairo_surface_status(surface.get()));
  const Context context(cairo_create(surface.get()));
  const RsvgRectangle viewport{0, 0, size.width, size.height};
  if (!rsvg_handle_render_document(handle.get(), context.get(), &viewport, &error)) {
    fail_with(error);
  }
  check_status(cairo_status(context.get()));

  std::string bytes;
  check_status(cairo_surface_write_to_png_stream(surface.get(), append_bytes, &bytes));
  return bytes;
}

}  // namespace attend
