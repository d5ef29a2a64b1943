// SPDX-License-Identifier: Apache-2.0
//
// Reads the fields of one JSON object strictly and collects everything that is wrong, each with its
// JSON pointer, instead of stopping at the first. An unknown field is an error too: a
// misspelt limit must never be a limit that is silently not in force.
#pragma once

#include "kernel-manager/http/message/problem.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::api {

using FieldErrors = std::vector<http::FieldError>;

/// base plus "/name", with ~ and / escaped (RFC 6901).
std::string child_pointer(std::string_view base, std::string_view name);

/// The bounds of a number. `source` says in the message who set the maximum: "the server's
/// ceiling".
struct IntegerBounds {
    std::uint64_t minimum = 0;
    std::uint64_t maximum = UINT64_MAX;
    std::string_view source = "the maximum";
};

class ObjectReader {
 public:
    /// value need not be an object: then that is the error. Both must outlive the reader.
    ObjectReader(const nlohmann::json& value, std::string pointer, FieldErrors& errors);

    // Each returns nothing if the field is missing, and nothing plus an error if it is not
    // acceptable.
    std::optional<std::string> text(const char* name, std::size_t bytes_max);
    std::optional<bool> boolean(const char* name);
    std::optional<std::uint64_t> integer(const char* name, const IntegerBounds& bounds);
    std::optional<double> number(const char* name, double minimum, double maximum);
    /// Null if missing or not of that type.
    const nlohmann::json* object(const char* name);
    const nlohmann::json* array(const char* name);
    /// Any type; null if missing.
    const nlohmann::json* any(const char* name);

    bool has(const char* name) const;
    void fail(std::string_view name, std::string message);
    const std::string& pointer() const { return pointer_; }
    /// Reports the fields that have not been read. Call once, last.
    void finish();

 private:
    const nlohmann::json* take(const char* name);

    const nlohmann::json& value_;
    std::string pointer_;
    FieldErrors& errors_;
    std::set<std::string, std::less<>> known_;
};

}  // namespace cellkeep::api
