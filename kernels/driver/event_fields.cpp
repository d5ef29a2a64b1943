// SPDX-License-Identifier: Apache-2.0
#include "kernels/driver/event_fields.hpp"

#include <utility>

namespace cellkeep::kernels::driver {

using nlohmann::json;

std::string text_field(const json& object, const char* name, std::string fallback) {
    const auto found = object.find(name);
    return found != object.end() && found->is_string() ? found->get<std::string>()
                                                       : std::move(fallback);
}

json object_field(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_object() ? *found : json::object();
}

json list_field(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_array() ? *found : json::array();
}

json integer_field(const json& object, const char* name, const json& fallback) {
    const auto found = object.find(name);
    return found != object.end() && found->is_number_integer() ? *found : fallback;
}

bool flag_field(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_boolean() && found->get<bool>();
}

bool is_ok(const std::optional<json>& done) {
    return done && text_field(*done, "status", "ok") != "error";
}

CodeFault read_fault(const json& done) {
    CodeFault fault{text_field(done, "name", "Error"), text_field(done, "message"), {}};
    fault.traceback = json::array();
    for (const json& line : list_field(done, "traceback")) {
        if (line.is_string()) {
            fault.traceback.push_back(line);
        }
    }
    return fault;
}

}  // namespace cellkeep::kernels::driver
