// SPDX-License-Identifier: Apache-2.0
//
// Rich output of C++ cells. Included already; including it again does nothing.
//
//     cellkeep::html("<b>bold</b>");                 cellkeep::svg("<svg …/>");
//     cellkeep::png_file("plot.png");                cellkeep::json(R"({"a": 1})");
//     cellkeep::display(any_value);                  // as it would be shown at the end of a cell
//     cellkeep::publish(cellkeep::bundle().add("text/html", "…").add("text/plain", "…"));
//
// A type shows itself richly if a function `cellkeep::bundle cellkeep_bundle(const T&)` is found
// beside it.
#pragma once

#include <unistd.h>

#include <cellkeep/print.hpp>
#include <cellkeep/publish_abi.h>
#include <cstddef>
#include <fstream>
#include <ios>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace cellkeep {

/// One thing in several formats: a front end shows the richest that it can. Text is UTF-8, JSON is
/// JSON text, images are their bytes.
class bundle {
 public:
    bundle& add(std::string mime, std::string data) {
        items_.emplace_back(std::move(mime), std::move(data));
        return *this;
    }
    const std::vector<std::pair<std::string, std::string>>& items() const { return items_; }

 private:
    std::vector<std::pair<std::string, std::string>> items_;
};

namespace detail {

enum class kind { value = 0, display = 1, update = 2 };

inline void send(kind what, const bundle& shown, const char* display_id = "") {
    std::vector<cellkeep_cpp_item> items;
    for (const auto& [mime, data] : shown.items()) {
        items.push_back({mime.c_str(), data.data(), data.size()});
    }
    cellkeep_cpp_publish(static_cast<int>(what), items.data(), items.size(), display_id);
}

/// Of a cell that is a whole program. `Main` is any type that main may have.
template <class Main>
void run_main(Main* main_of_cell) {
    static char name[] = "main";
    static char* arguments[] = {name, nullptr};
    if constexpr (std::is_invocable_v<Main*, int, char**, char**>) {
        cellkeep_cpp_returned(main_of_cell(1, arguments, environ));
    } else if constexpr (std::is_invocable_v<Main*, int, char**>) {
        cellkeep_cpp_returned(main_of_cell(1, arguments));
    } else {
        cellkeep_cpp_returned(main_of_cell());
    }
}

template <class T>
bundle bundle_of(const T& value) {
    if constexpr (requires {
                      { cellkeep_bundle(value) } -> std::same_as<bundle>;
                  }) {
        return cellkeep_bundle(value);
    } else {
        std::ostringstream out;
        out << std::boolalpha;
        print(out, value);
        return bundle().add("text/plain", out.str());
    }
}

/// `show_value, (expression)`: the value of a cell. An expression of type void is left alone by the
/// language itself. `std::cout << x` is a stream, which is not shown either.
struct value_shower {};
inline constexpr value_shower show_value;

template <class T>
void operator,(const value_shower&, const T& value) {
    if constexpr (!std::is_base_of_v<std::ios_base, T>) {
        send(kind::value, bundle_of(value));
    }
}

}  // namespace detail

/// With an id the display can be changed afterwards (update_display).
inline void publish(const bundle& shown, const std::string& display_id = {}) {
    detail::send(detail::kind::display, shown, display_id.c_str());
}
inline void update_display(const bundle& shown, const std::string& display_id) {
    detail::send(detail::kind::update, shown, display_id.c_str());
}
/// Takes away what the cell has shown; with wait, when the next thing is shown.
inline void clear_output(bool wait = false) {
    cellkeep_cpp_clear(wait ? 1 : 0);
}

template <class T>
void display(const T& value) {
    publish(detail::bundle_of(value));
}
inline void html(std::string text) {
    publish(bundle().add("text/html", std::move(text)));
}
inline void markdown(std::string text) {
    publish(bundle().add("text/markdown", std::move(text)));
}
inline void latex(std::string text) {
    publish(bundle().add("text/latex", std::move(text)));
}
inline void svg(std::string text) {
    publish(bundle().add("image/svg+xml", std::move(text)));
}
inline void json(std::string text) {
    publish(bundle().add("application/json", std::move(text)));
}
inline void png(std::string bytes) {
    publish(bundle().add("image/png", std::move(bytes)));
}
inline void jpeg(std::string bytes) {
    publish(bundle().add("image/jpeg", std::move(bytes)));
}

/// The bytes of a file; throws std::runtime_error with its name if it cannot be read.
inline std::string read_bytes(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw std::runtime_error("cannot read " + path);
    }
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
inline void png_file(const std::string& path) {
    png(read_bytes(path));
}
inline void svg_file(const std::string& path) {
    svg(read_bytes(path));
}

}  // namespace cellkeep
