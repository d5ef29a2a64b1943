// SPDX-License-Identifier: Apache-2.0
//
// The bodies that create or change a Jupyter session: a client's document and its kernel. Pure;
// every failure is kInvalidArgument in words for the client.
#pragma once

#include "kernel-manager/jupyter/rest/rest_model.hpp"
#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>

namespace cellkeep::jupyter {

/// The object of a request's body, in the newer of two shapes: {"notebook": {"path"}} is {"path",
/// "type": "notebook"}. Nothing is an error.
Result<nlohmann::json> read_document_object(std::optional<nlohmann::json> body);

/// A document as a client describes it, and the kernel that it asks for.
struct DocumentOrder {
    RestSession document;
    nlohmann::json kernel = nlohmann::json::object();  // the field "kernel"
};
/// `present` keeps the fields that the object does not have.
Result<DocumentOrder> read_document_order(const nlohmann::json& object, RestSession present);
/// The name of a field that a new document lacks; null if it has all.
const char* find_missing_field(const nlohmann::json& object);

/// What names the kernel of a document. Both may be empty: the body asks for no kernel.
struct KernelChoice {
    std::string id;
    std::string name;
};
Result<KernelChoice> read_kernel_choice(const nlohmann::json& kernel);

/// Where the kernel of a document starts: where the document is. Documents of other types than
/// "notebook" have a name in place of a path, and start in the workspace itself.
std::string directory_of(const RestSession& document);

}  // namespace cellkeep::jupyter
