// SPDX-License-Identifier: Apache-2.0
//
// What display.hpp calls in the driver. Cells use display.hpp.
#pragma once

#include <cstddef>

extern "C" {
struct cellkeep_cpp_item {
    const char* mime;
    const char* data;
    std::size_t size;
};
/// kind: 0 the cell's value, 1 a display, 2 an update of the display of that id.
void cellkeep_cpp_publish(
    int kind, const cellkeep_cpp_item* items, std::size_t count, const char* display_id);
void cellkeep_cpp_clear(int wait);
/// The line of the cell whose statement or variable has been begun last.
extern unsigned cellkeep_cpp_line;
/// What the cell's main returned; it is the cell's exit code.
void cellkeep_cpp_returned(int code);
}
