// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/notebook_output.hpp"

#include <algorithm>

namespace cellkeep::session {

namespace {

using protocol::TextSplicer;

void add_bundle(TextSplicer& text, const MimeBundle& bundle) {
    text.add(R"("data":)").add(bundle.data).add(R"(,"metadata":)").add(bundle.metadata);
}

struct OutputWriter {
    TextSplicer& text;

    void operator()(const StreamOutput& one) const {
        text.add(R"({"output_type":"stream","name":")").add(one.name).add(R"(","text":")");
        text.add(one.inside).add(R"("})");
    }
    void operator()(const DisplayOutput& one) const {
        text.add(R"({"output_type":"display_data",)");
        add_bundle(text, *one.bundle);
        text.add("}");
    }
    void operator()(const ResultOutput& one) const {
        text.add(R"({"output_type":"execute_result",)");
        add_bundle(text, one.bundle);
        const auto& count = one.execution_count;
        text.add(R"(,"execution_count":)").add(count ? std::to_string(*count) : "null").add("}");
    }
    void operator()(const ErrorOutput& one) const {
        text.add(R"({"output_type":"error","ename":)").add(one.ename);
        text.add(R"(,"evalue":)").add(one.evalue);
        text.add(R"(,"traceback":)").add(one.traceback).add("}");
    }
};

}  // namespace

protocol::TextPieces outputs_text(const std::vector<NotebookOutput>& outputs) {
    TextSplicer text;
    const char* separator = "[";
    for (const NotebookOutput& output : outputs) {
        text.add(separator);
        std::visit(OutputWriter{text}, output);
        separator = ",";
    }
    return text.add(outputs.empty() ? "[]" : "]").finish();
}

protocol::TextPieces displays_text(const std::vector<NotebookOutput>& outputs) {
    TextSplicer text;
    text.add("[");
    bool first = true;
    for (const NotebookOutput& output : outputs) {
        if (const auto* display = std::get_if<DisplayOutput>(&output)) {
            text.add(first ? "{" : ",{");
            add_bundle(text, *display->bundle);
            text.add("}");
            first = false;
        }
    }
    return text.add("]").finish();
}

std::size_t count_displays(const std::vector<NotebookOutput>& outputs) {
    return static_cast<std::size_t>(
        std::count_if(outputs.begin(), outputs.end(), [](const NotebookOutput& output) {
            return std::holds_alternative<DisplayOutput>(output);
        }));
}

}  // namespace cellkeep::session
