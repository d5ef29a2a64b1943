// SPDX-License-Identifier: Apache-2.0
//
// What an execution has shown, as a notebook keeps it (nbformat 4, "Code cell outputs"). What came
// from the guest is held as the JSON text in which it came. Values.
#pragma once

#include "protocol/raw_json.hpp"
#include "protocol/text_pieces.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cellkeep::session {

struct StreamOutput {
    std::string name;    // "stdout", "stderr"
    std::string inside;  // its text as it stands between the quotes of a JSON string
};

/// Both are JSON objects.
struct MimeBundle {
    protocol::RawJson data;
    protocol::RawJson metadata;
};

struct DisplayOutput {
    /// Displays of one display_id that were updated together share it.
    std::shared_ptr<MimeBundle> bundle;
};

struct ResultOutput {
    MimeBundle bundle;
    std::optional<std::int64_t> execution_count;
};

struct ErrorOutput {
    protocol::RawJson ename;      // a string
    protocol::RawJson evalue;     // a string
    protocol::RawJson traceback;  // an array of strings
};

using NotebookOutput = std::variant<StreamOutput, DisplayOutput, ResultOutput, ErrorOutput>;

/// The list as JSON text.
protocol::TextPieces outputs_text(const std::vector<NotebookOutput>& outputs);
/// Only the displays, as [{data, metadata}].
protocol::TextPieces displays_text(const std::vector<NotebookOutput>& outputs);
std::size_t count_displays(const std::vector<NotebookOutput>& outputs);

}  // namespace cellkeep::session
