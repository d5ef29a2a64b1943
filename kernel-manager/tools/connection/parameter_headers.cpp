// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/tools/connection/parameter_headers.hpp"

#include "kernel-manager/egress/message/message_reader.hpp"
#include "kernel-manager/tools/limits.hpp"
#include "protocol/json.hpp"
#include "protocol/mcp/header_value.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <utility>

namespace cellkeep::tools {

namespace {

using nlohmann::json;

constexpr const char* kMark = "x-mcp-header";
constexpr std::size_t kParameterNameBytesMax = 64;

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

/// RFC 9110, section 5.6.2.
bool is_token(std::string_view text) {
    constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
    return !text.empty() && text.size() <= kParameterNameBytesMax &&
           std::all_of(text.begin(), text.end(), [&](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      kOthers.find(c) != std::string_view::npos;
           });
}

/// Walks a schema. Its depth is that of a JSON text.
class MarkFinder {
 public:
    Status walk(const json& schema, bool reachable) {
        if (schema.is_array()) {
            for (const json& one : schema) {
                BOOST_OUTCOME_TRY(walk(one, false));
            }
            return ok();
        }
        if (!schema.is_object()) {
            return ok();
        }
        if (const auto mark = schema.find(kMark); mark != schema.end()) {
            BOOST_OUTCOME_TRY(take(schema, *mark, reachable));
        }
        for (const auto& [key, value] : schema.items()) {
            if (key == "properties") {
                BOOST_OUTCOME_TRY(walk_members(value, reachable));
            } else if (is_one_of(
                           key,
                           {"$defs", "definitions", "dependentSchemas", "patternProperties"})) {
                BOOST_OUTCOME_TRY(walk_members(value, false));
            } else if (!is_one_of(key, {"const", "default", "enum", "examples", kMark})) {
                BOOST_OUTCOME_TRY(walk(value, false));
            }
        }
        return ok();
    }

    std::vector<ParameterHeader> found() && { return std::move(found_); }

 private:
    /// Schemas by names, which say nothing here.
    Status walk_members(const json& schemas, bool reachable) {
        if (!schemas.is_object()) {
            return ok();
        }
        for (const auto& [name, schema] : schemas.items()) {
            path_.push_back(name);
            BOOST_OUTCOME_TRY(walk(schema, reachable));
            path_.pop_back();
        }
        return ok();
    }

    Status take(const json& schema, const json& mark, bool reachable) {
        const auto type = schema.find("type");
        const bool plain =
            type != schema.end() && type->is_string() &&
            is_one_of(type->get_ref<const std::string&>(), {"boolean", "integer", "string"});
        if (!reachable || path_.empty() || !plain) {
            return Error(ErrorCode::kProtocol, "a header for what can be in none");
        }
        if (!mark.is_string() || !is_token(mark.get_ref<const std::string&>())) {
            return Error(ErrorCode::kProtocol, "a header without a name that one can have");
        }
        ParameterHeader header{mark.get<std::string>(), path_};
        const bool repeated =
            std::any_of(found_.begin(), found_.end(), [&](const ParameterHeader& other) {
                return egress::same_name(other.name, header.name);
            });
        if (repeated) {
            return Error(ErrorCode::kProtocol, "two headers of one name");
        }
        if (found_.size() == kParameterHeadersMax) {
            return Error(
                ErrorCode::kLimitExceeded,
                "more than " + std::to_string(kParameterHeadersMax) + " headers");
        }
        found_.push_back(std::move(header));
        return ok();
    }

    std::vector<std::string> path_;
    std::vector<ParameterHeader> found_;
};

std::optional<std::string> text_of_argument(const json& value) {
    if (value.is_string()) {
        return value.get<std::string>();
    }
    if (value.is_number_integer() || value.is_boolean()) {
        return protocol::dump_json(value);
    }
    return std::nullopt;
}

const json* find_argument(const json& arguments, const std::vector<std::string>& path) {
    const json* at = &arguments;
    for (const std::string& name : path) {
        const auto found = at->is_object() ? at->find(name) : at->end();
        if (found == at->end()) {
            return nullptr;
        }
        at = &*found;
    }
    return at;
}

}  // namespace

Result<std::vector<ParameterHeader>> read_parameter_headers(const json& schema) {
    MarkFinder finder;
    BOOST_OUTCOME_TRY(finder.walk(schema, true));
    return std::move(finder).found();
}

Result<NamedTexts> repeat_arguments(
    const std::vector<ParameterHeader>& headers, std::string_view arguments) {
    NamedTexts made;
    if (headers.empty()) {
        return made;
    }
    BOOST_OUTCOME_TRY(const json read, protocol::parse_json_object(arguments, "the arguments"));
    for (const ParameterHeader& header : headers) {
        const json* argument = find_argument(read, header.path);
        const auto text = argument == nullptr ? std::nullopt : text_of_argument(*argument);
        if (!text) {
            continue;
        }
        std::string value = protocol::encode_mcp_header(*text);
        if (value.size() > kParameterHeaderBytesMax) {
            return Error(
                ErrorCode::kLimitExceeded,
                "an argument that it wants in a header has more than " +
                    std::to_string(kParameterHeaderBytesMax) + " bytes");
        }
        made.emplace_back("Mcp-Param-" + header.name, std::move(value));
    }
    return made;
}

}  // namespace cellkeep::tools
