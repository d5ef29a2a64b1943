// SPDX-License-Identifier: Apache-2.0
//
// The members of a JSON object that a client of E2B's sends. Names that are not asked for are let
// through, as E2B's own services do: newer clients send more. A null is a member that is not there.
// Remembers the first fault. Not thread-safe.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace cellkeep::e2b {

class Fields {
 public:
    /// The object must outlive this. What is no object has no members, and is the first fault.
    explicit Fields(const nlohmann::json& object, std::string where = {});

    /// Null if it is not there.
    const nlohmann::json* any(const char* name) const;
    std::optional<std::string> text(const char* name, std::size_t bytes_max);
    std::optional<bool> boolean(const char* name);
    std::optional<std::int64_t> integer(const char* name, std::int64_t least, std::int64_t most);
    const nlohmann::json* object(const char* name);
    const nlohmann::json* array(const char* name);
    /// Names and values that are text without NUL; empty if it is not there.
    std::map<std::string, std::string> texts(
        const char* name, std::size_t entries_max, std::size_t bytes_max);

    void fail(std::string_view name, std::string_view why);
    /// Nothing was wrong so far.
    bool good() const { return !fault_; }
    /// kInvalidArgument. Precondition: !good().
    Error error() const;

 private:
    const nlohmann::json& object_;
    std::string where_;
    std::optional<std::string> fault_;
};

/// A request's body; an empty one is an object without members. kInvalidArgument. Pure.
Result<nlohmann::json> parse_body(const std::string& text);

}  // namespace cellkeep::e2b
