#pragma once

namespace attend {

// Whether the descriptor is a terminal that supports cursor movement: TERM is set and not "dumb".
bool moves_cursor(int descriptor);

// Whether it also supports 24-bit colours (the Linux console does not) and the user permits them:
// NO_COLOR is unset or empty (no-color.org).
bool shows_colors(int descriptor);

}  // namespace attend
