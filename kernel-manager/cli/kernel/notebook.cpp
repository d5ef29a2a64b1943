// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/notebook.hpp"

#include "protocol/base64.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::cli {

namespace {

using Json = nlohmann::ordered_json;

/// nbformat's "multiline string": text, or a list of lines that keep their line ends.
template <typename AnyJson>
std::string joined_text(const AnyJson& value) {
    if (value.is_string()) {
        return value.template get<std::string>();
    }
    std::string text;
    if (value.is_array()) {
        for (const auto& line : value) {
            text += line.is_string() ? line.template get<std::string>() : std::string();
        }
    }
    return text;
}

bool has_tag(const Json& cell, std::string_view tag) {
    const auto metadata = cell.find("metadata");
    if (metadata == cell.end() || !metadata->is_object()) {
        return false;
    }
    const auto tags = metadata->find("tags");
    return tags != metadata->end() && tags->is_array() &&
           std::any_of(tags->begin(), tags->end(), [tag](const Json& each) {
               return each.is_string() && each.get_ref<const std::string&>() == tag;
           });
}

bool is_code(const Json& cell) {
    const auto type = cell.find("cell_type");
    return type != cell.end() && type->is_string() && type->get_ref<const std::string&>() == "code";
}

bool is_cell(const Json& cell) {
    return cell.is_object() && cell.contains("cell_type") && cell.contains("source") &&
           (cell["source"].is_string() || cell["source"].is_array());
}

}  // namespace

Result<Notebook> Notebook::parse(std::string_view text, const std::string& name) {
    const auto refuse = [&name](const char* what) {
        return Error(ErrorCode::kInvalidArgument, name + " " + what);
    };
    Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (document.is_discarded() || !document.is_object()) {
        return refuse("is not a notebook: it is not a JSON object");
    }
    const auto format = document.find("nbformat");
    if (format == document.end() || !format->is_number_integer() || format->get<int>() != 4) {
        return refuse("is not a notebook of format 4");
    }
    const auto cells = document.find("cells");
    if (cells == document.end() || !cells->is_array() ||
        !std::all_of(cells->begin(), cells->end(), is_cell)) {
        return refuse("is not a notebook: its cells are not what they should be");
    }
    if (document.contains("metadata") && !document["metadata"].is_object()) {
        return refuse("is not a notebook: its metadata is not an object");
    }
    return Notebook(std::move(document));
}

std::string Notebook::language() const {
    const auto text = [this](const char* part, const char* field) -> std::string {
        const auto metadata = document_.find("metadata");
        if (metadata == document_.end() || !metadata->contains(part) ||
            !(*metadata)[part].is_object()) {
            return {};
        }
        const auto& object = (*metadata)[part];
        const auto found = object.find(field);
        return found != object.end() && found->is_string() ? found->template get<std::string>()
                                                           : std::string();
    };
    std::string name = text("kernelspec", "language");
    if (name.empty()) {
        name = text("language_info", "name");
    }
    if (name.empty()) {
        name = text("kernelspec", "name");
    }
    std::transform(name.begin(), name.end(), name.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    const bool is_python = name.empty() || name == "python3" || name == "ipython";
    return is_python ? "python" : name;
}

std::vector<CodeCell> Notebook::code_cells() const {
    std::vector<CodeCell> found;
    const Json& cells = document_["cells"];
    for (std::size_t i = 0; i < cells.size(); ++i) {
        if (is_code(cells[i])) {
            found.push_back(
                {i, joined_text(cells[i]["source"]), has_tag(cells[i], "raises-exception")});
        }
    }
    return found;
}

void Notebook::set_outputs(
    std::size_t position,
    std::optional<std::int64_t> execution_count,
    const nlohmann::json& outputs) {
    Json& cell = document_["cells"][position];
    cell["execution_count"] = execution_count ? Json(*execution_count) : Json(nullptr);
    cell["outputs"] = Json(outputs);
}

void Notebook::clear_outputs() {
    for (const CodeCell& cell : code_cells()) {
        set_outputs(cell.position, std::nullopt, nlohmann::json::array());
    }
}

void Notebook::set_session_id(const std::string& session_id) {
    document_["metadata"]["cellkeep"]["session_id"] = session_id;
}

std::string Notebook::to_text() const {
    return document_.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<std::string> png_pictures(const nlohmann::json& outputs) {
    std::vector<std::string> pictures;
    for (const auto& output : outputs) {
        if (!output.is_object() || !output.contains("data") || !output["data"].is_object() ||
            !output["data"].contains("image/png")) {
            continue;
        }
        std::string text = joined_text(output["data"]["image/png"]);
        // IPython ends it with a newline; other kernels break the lines.
        text.erase(
            std::remove_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }),
            text.end());
        if (auto bytes = protocol::decode_base64(text); bytes && !bytes->empty()) {
            pictures.push_back(std::move(*bytes));
        }
    }
    return pictures;
}

}  // namespace cellkeep::cli
