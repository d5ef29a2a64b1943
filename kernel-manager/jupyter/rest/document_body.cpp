// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/document_body.hpp"

#include "kernel-manager/jupyter/rest/rest_body.hpp"

#include <optional>
#include <string_view>
#include <utility>

namespace cellkeep::jupyter {

namespace {

/// The fields of a session that are given; `session` keeps what is not.
Status read_fields(const nlohmann::json& object, RestSession& session) {
    const std::pair<const char*, std::string*> fields[] = {
        {"path", &session.path}, {"name", &session.name}, {"type", &session.type}};
    for (const auto& [name, target] : fields) {
        const auto found = object.find(name);
        if (found != object.end() && !found->is_null()) {
            BOOST_OUTCOME_TRY(*target, text_field(object, name));
        }
    }
    return ok();
}

}  // namespace

Result<nlohmann::json> read_document_object(std::optional<nlohmann::json> body) {
    if (!body) {
        return Error(ErrorCode::kInvalidArgument, "No JSON data provided");
    }
    nlohmann::json object = std::move(*body);
    if (object.contains("notebook")) {
        BOOST_OUTCOME_TRY(const auto notebook, object_field(object, "notebook"));
        BOOST_OUTCOME_TRY(const std::string path, text_field(notebook, "path"));
        BOOST_OUTCOME_TRY(const std::string name, text_field(notebook, "name"));
        if (!object.contains("path") && !(path.empty() && name.empty())) {
            object["path"] = path.empty() ? name : path;
        }
        if (!object.contains("type")) {
            object["type"] = "notebook";
        }
    }
    return object;
}

Result<DocumentOrder> read_document_order(const nlohmann::json& object, RestSession present) {
    DocumentOrder order;
    order.document = std::move(present);
    BOOST_OUTCOME_TRY(read_fields(object, order.document));
    BOOST_OUTCOME_TRY(order.kernel, object_field(object, "kernel"));
    return order;
}

const char* find_missing_field(const nlohmann::json& object) {
    for (const char* name : {"path", "type"}) {
        if (!object.contains(name) || object[name].is_null()) {
            return name;
        }
    }
    return nullptr;
}

Result<KernelChoice> read_kernel_choice(const nlohmann::json& kernel) {
    KernelChoice choice;
    BOOST_OUTCOME_TRY(choice.id, text_field(kernel, "id"));
    BOOST_OUTCOME_TRY(choice.name, text_field(kernel, "name"));
    return choice;
}

std::string directory_of(const RestSession& session) {
    const std::size_t slash = session.path.rfind('/');
    if (session.type != "notebook" || slash == std::string::npos) {
        return {};
    }
    auto directory = directory_in_workspace(session.path.substr(0, slash));
    return directory ? std::move(directory).value() : std::string();
}

}  // namespace cellkeep::jupyter
