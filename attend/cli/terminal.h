#pragma once

namespace attend {

// Whether a file descriptor is a terminal that moves its cursor by escape sequences: its type,
// TERM, is set and is not dumb.
bool moves_cursor(int descriptor);

// Whether it also shows 24-bit colours, which the console of Linux does not, and its user wants
// some: NO_COLOR is unset or empty (no-color.org).
bool shows_colors(int descriptor);

}  // namespace attend
