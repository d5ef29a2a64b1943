// SPDX-License-Identifier: Apache-2.0
//
// Values as text: what is printable with << is, strings are quoted, containers, pairs, tuples,
// optionals, variants and pointers are taken apart.
#pragma once

#include <cxxabi.h>

#include <concepts>
#include <cstddef>
#include <exception>
#include <iomanip>
#include <limits>
#include <memory>
#include <optional>
#include <ostream>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>

namespace cellkeep::detail {

/// Of a container; of a container in a container in …
inline constexpr std::size_t kItemsMax = 100;
inline constexpr int kDepthMax = 6;

template <class T>
concept character =
    std::same_as<T, char> || std::same_as<T, signed char> || std::same_as<T, unsigned char>;
template <class T>
concept wide_character = std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
    std::same_as<T, char16_t> || std::same_as<T, char32_t>;
template <class T>
concept text = std::convertible_to<const T&, std::string_view>;
template <class T>
concept streamable = requires(std::ostream& out, const T& value) {
    out << value;
};
template <class T>
concept tuple_like = requires {
    std::tuple_size<T>::value;
};
template <class T>
concept smart_pointer = requires(const T& value) {
    typename T::element_type;
    {value.get()};
    {static_cast<bool>(value)};
}
&&!text<T>;
template <class T>
concept map_like = requires {
    typename T::key_type;
    typename T::mapped_type;
};
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_variant = false;
template <class... T>
inline constexpr bool is_variant<std::variant<T...>> = true;
/// Their element_type is the item's, and the number of items is unknown.
template <class T>
inline constexpr bool is_pointer_to_array = false;
template <class T, class Deleter>
inline constexpr bool is_pointer_to_array<std::unique_ptr<T[], Deleter>> = true;
template <class T>
inline constexpr bool is_pointer_to_array<std::shared_ptr<T[]>> = true;
template <class T, std::size_t Size>
inline constexpr bool is_pointer_to_array<std::shared_ptr<T[Size]>> = true;

inline std::string type_name(const std::type_info& type) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> name(
        abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), std::free);
    return name ? name.get() : type.name();
}

inline void print_quoted(std::ostream& out, std::string_view value, char quote) {
    out << quote;
    for (const char byte : value) {
        switch (byte) {
            case '\n':
                out << "\\n";
                break;
            case '\t':
                out << "\\t";
                break;
            case '\r':
                out << "\\r";
                break;
            case '\0':
                out << "\\0";
                break;
            case '\\':
                out << "\\\\";
                break;
            default:
                if (byte == quote) {
                    out << '\\';
                }
                out << byte;
        }
    }
    out << quote;
}

/// Before C++23, << takes a pointer to something volatile for a bool.
inline void print_address(std::ostream& out, const volatile void* address) {
    out << const_cast<const void*>(address);
}

template <class T>
void print(std::ostream& out, const T& value, int depth = 0);

template <class T>
void print_range(std::ostream& out, const T& range, int depth) {
    std::size_t count = 0;
    out << '{';
    // A range whose begin() is not const (a filtered view) is copied, as a view may be.
    const auto all = [&](auto& items) {
        for (auto&& item : items) {
            if (count == kItemsMax) {
                out << ", …";
                break;
            }
            out << (count++ == 0 ? "" : ", ");
            if constexpr (map_like<T>) {
                print(out, item.first, depth + 1);
                out << ": ";
                print(out, item.second, depth + 1);
            } else {
                using item_type = std::ranges::range_value_t<std::remove_cvref_t<decltype(items)>>;
                print<item_type>(out, item, depth + 1);
            }
        }
    };
    if constexpr (std::ranges::input_range<const T>) {
        all(range);
    } else {
        T copy = range;
        all(copy);
    }
    out << '}';
}

template <class T, std::size_t... Index>
void print_tuple(std::ostream& out, const T& value, int depth, std::index_sequence<Index...>) {
    out << '{';
    ((out << (Index == 0 ? "" : ", "), print(out, std::get<Index>(value), depth + 1)), ...);
    out << '}';
}

template <class T>
void print_number(std::ostream& out, const T& value) {
    if constexpr (std::floating_point<T>) {
        // As short as it can be and still be this number, for a person's eyes: 0.1, not 0.1000…01.
        const auto before = out.precision(std::same_as<T, float> ? 6 : 15);
        out << value;
        out.precision(before);
    } else {
        out << value;
    }
}

template <class T>
void print(std::ostream& out, const T& value, int depth) {
    if (depth > kDepthMax) {
        out << "…";
    } else if constexpr (std::same_as<T, bool>) {
        out << (value ? "true" : "false");
    } else if constexpr (std::is_function_v<T>) {
        out << type_name(typeid(T)) << " at " << reinterpret_cast<const void*>(&value);
    } else if constexpr (character<T>) {
        print_quoted(out, std::string_view(reinterpret_cast<const char*>(&value), 1), '\'');
    } else if constexpr (wide_character<T>) {
        out << static_cast<unsigned long>(value);
    } else if constexpr (std::is_arithmetic_v<T>) {
        print_number(out, value);
    } else if constexpr (std::is_null_pointer_v<T>) {
        out << "nullptr";
    } else if constexpr (std::is_pointer_v<T> && std::convertible_to<T, const char*>) {
        if (value == nullptr) {
            out << "nullptr";
        } else {
            print_quoted(out, value, '"');
        }
    } else if constexpr (text<T>) {
        print_quoted(out, value, '"');
    } else if constexpr (std::is_pointer_v<T>) {
        if (value == nullptr) {
            out << "nullptr";
        } else if constexpr (std::is_function_v<std::remove_pointer_t<T>>) {
            out << reinterpret_cast<const void*>(value);
        } else {
            print_address(out, value);
        }
    } else if constexpr (is_optional<T>) {
        if (value) {
            print(out, *value, depth + 1);
        } else {
            out << "nullopt";
        }
    } else if constexpr (is_variant<T>) {
        if (value.valueless_by_exception()) {
            out << "valueless";
        } else {
            std::visit([&](const auto& held) { print(out, held, depth + 1); }, value);
        }
    } else if constexpr (std::same_as<T, std::monostate>) {
        out << "monostate";
    } else if constexpr (streamable<T> && !smart_pointer<T> && !std::is_array_v<T>) {
        out << value;
    } else if constexpr (smart_pointer<T>) {
        if (!value) {
            out << "nullptr";
        } else if constexpr (std::is_void_v<typename T::element_type> || is_pointer_to_array<T>) {
            print_address(out, value.get());
        } else {
            out << "-> ";
            print<std::remove_cv_t<typename T::element_type>>(out, *value.get(), depth + 1);
        }
    } else if constexpr (std::ranges::input_range<const T> || std::ranges::input_range<T>) {
        print_range(out, value, depth);
    } else if constexpr (tuple_like<T>) {
        print_tuple(out, value, depth, std::make_index_sequence<std::tuple_size_v<T>>());
    } else if constexpr (std::is_enum_v<T>) {
        out << type_name(typeid(T)) << '(' << +static_cast<std::underlying_type_t<T>>(value) << ')';
    } else if constexpr (std::is_base_of_v<std::exception, T>) {
        out << type_name(typeid(value)) << ": " << value.what();
    } else {
        out << type_name(typeid(T)) << " at ";
        print_address(out, std::addressof(value));
    }
}

}  // namespace cellkeep::detail
