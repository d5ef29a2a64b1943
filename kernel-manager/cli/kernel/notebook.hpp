// SPDX-License-Identifier: Apache-2.0
//
// A notebook file (nbformat 4) whose code cells get new outputs. Every other field, and the order
// of all fields, stays as it was.
#pragma once

#include "protocol/support/result.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::cli {

struct CodeCell {
    std::size_t position = 0;  // among all cells
    std::string source;
    bool may_raise = false;  // tagged "raises-exception"
};

class Notebook {
 public:
    /// kInvalidArgument if it is not a notebook of format 4; `name` stands in the message.
    static Result<Notebook> parse(std::string_view text, const std::string& name);

    /// What its metadata says its cells are written in; "python" if it says nothing.
    std::string language() const;
    std::vector<CodeCell> code_cells() const;
    /// position is a CodeCell's. outputs is a list of nbformat 4 outputs.
    void set_outputs(
        std::size_t position,
        std::optional<std::int64_t> execution_count,
        const nlohmann::json& outputs);
    /// Of every code cell: nothing of an earlier run remains in a notebook that stops at an error.
    void clear_outputs();
    /// metadata.cellkeep.session_id.
    void set_session_id(const std::string& session_id);
    /// As Jupyter writes it: one space of indentation, a newline at the end.
    std::string to_text() const;

 private:
    explicit Notebook(nlohmann::ordered_json document) : document_(std::move(document)) {}
    nlohmann::ordered_json document_;
};

/// The PNG pictures among the outputs, decoded, in order. What is not base64 is left out.
std::vector<std::string> png_pictures(const nlohmann::json& outputs);

}  // namespace cellkeep::cli
