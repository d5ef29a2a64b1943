// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/run/runner.hpp"

#include "kernel-manager/cli/json_field.hpp"
#include "kernel-manager/cli/run/console.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kExcerptLinesMax = 12;
constexpr std::size_t kExcerptWidth = 100;
constexpr std::size_t kTitleWidth = 60;

/// At most width bytes, cut at a character, not inside one (UTF-8 continuation bytes are 10xxxxxx).
std::string clip(std::string_view text, std::size_t width) {
    if (text.size() <= width) {
        return std::string(text);
    }
    while (width > 0 && (static_cast<unsigned char>(text[width]) & 0xC0U) == 0x80U) {
        --width;
    }
    return std::string(text.substr(0, width)) + "…";
}

std::string first_line(std::string_view source) {
    while (!source.empty()) {
        const std::size_t end = source.find('\n');
        const std::string_view line = source.substr(0, end);
        if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
            return clip(line, kTitleWidth);
        }
        source = end == std::string_view::npos ? std::string_view() : source.substr(end + 1);
    }
    return {};
}

bool is_blank(std::string_view source) {
    return source.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::string seconds(const nlohmann::json& execution) {
    const auto metrics = execution.find("metrics");
    const double wall_ms =
        metrics == execution.end() ? 0.0 : number_field(*metrics, "wall_ms", 0.0);
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "%.2f s", wall_ms / 1000.0);
    return text.data();
}

std::string traceback_of(const nlohmann::json& execution) {
    const auto error = execution.find("error");
    if (error == execution.end() || !error->is_object()) {
        return {};
    }
    std::string text;
    if (const auto lines = error->find("traceback"); lines != error->end() && lines->is_array()) {
        for (const auto& line : *lines) {
            text += (line.is_string() ? line.get<std::string>() : std::string()) + "\n";
        }
    }
    if (text.empty()) {
        text = text_field(*error, "name") + ": " + text_field(*error, "message") + "\n";
    }
    if (const std::string hint = text_field(*error, "hint"); !hint.empty()) {
        text += hint + "\n";
    }
    return text;
}

/// nbformat's "multiline string": a string, or a list of lines that keep their line ends.
std::string multiline(const nlohmann::json& data, const char* type) {
    const nlohmann::json& lines = array_field(data, type);
    std::string text = text_field(data, type);
    for (const auto& line : lines) {
        text += line.is_string() ? line.get<std::string>() : std::string();
    }
    return text;
}

/// A display or a result as a terminal can show it: its text; the pictures, and whatever has no
/// text, by name and size. Adds its PNG picture to the report.
std::string display_text(const nlohmann::json& output, std::size_t cell, RunReport& report) {
    const auto data = output.find("data");
    if (data == output.end() || !data->is_object()) {
        return {};
    }
    std::string text = multiline(*data, "text/plain");
    if (text.empty()) {
        text = multiline(*data, "text/markdown");
    }
    const auto name = [&text](const std::string& what, std::size_t bytes) {
        text += (text.empty() ? "[" : " [") + what + ", " + std::to_string(bytes) + " bytes]";
    };
    for (std::string& png : png_pictures(nlohmann::json::array({output}))) {
        const auto earlier = std::count_if(
            report.figures.begin(), report.figures.end(), [cell](const Figure& figure) {
                return figure.cell == cell;
            });
        const std::size_t number = static_cast<std::size_t>(earlier) + 1;
        name("figure " + std::to_string(number) + ": image/png", png.size());
        report.figures.push_back({cell, number, std::move(png)});
    }
    for (const auto& [type, value] : data->items()) {
        const bool is_picture = type.substr(0, 6) == "image/" && type != "image/png";
        if (is_picture || text.empty()) {
            name(
                type,
                value.is_string() ? value.get_ref<const std::string&>().size()
                                  : multiline(*data, type.c_str()).size());
        }
    }
    if (!text.empty() && text.back() != '\n') {
        text.push_back('\n');
    }
    return text;
}

/// Gives everything that an execution said to `write`, in order: the name of the stream ("stdout"
/// for displays and results), and the text. Adds the pictures to the report.
void show_outputs(
    const nlohmann::json& execution,
    std::size_t cell,
    RunReport& report,
    const std::function<void(const std::string& stream, const std::string& text)>& write) {
    bool in_line = false;
    for (const auto& output : array_field(execution, "outputs")) {
        if (!output.is_object()) {
            continue;
        }
        if (text_field(output, "output_type") == "stream") {
            const std::string text = multiline(output, "text");
            in_line = !text.empty() && text.back() != '\n';
            write(text_field(output, "name"), text);
            continue;
        }
        const std::string text = display_text(output, cell, report);
        if (!text.empty()) {
            write("stdout", (in_line ? "\n" : "") + text);
            in_line = false;
        }
    }
}

void store(const nlohmann::json& execution, std::size_t position, Notebook& notebook) {
    std::optional<std::int64_t> count;
    if (const auto field = execution.find("execution_count");
        field != execution.end() && field->is_number_integer()) {
        count = field->get<std::int64_t>();
    }
    notebook.set_outputs(position, count, array_field(execution, "outputs"));
}

}  // namespace

std::string excerpt(std::string_view text, std::size_t lines_max) {
    std::string out;
    std::size_t shown = 0;
    std::size_t hidden = 0;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
        if (shown < lines_max) {
            out += "    " + clip(line, kExcerptWidth) + "\n";
            ++shown;
        } else {
            ++hidden;
        }
    }
    if (hidden > 0) {
        out += "    … " + std::to_string(hidden) + " more lines\n";
    }
    return out;
}

asio::awaitable<Result<RunReport>> run_cells(
    RunTarget& target, Notebook& notebook, const std::function<bool()>& interrupted) {
    RunReport report;
    notebook.clear_outputs();
    const std::vector<CodeCell> cells = notebook.code_cells();
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const CodeCell& cell = cells[i];
        if (interrupted()) {
            report.outcome = RunOutcome::kInterrupted;
            co_return report;
        }
        if (is_blank(cell.source)) {
            continue;
        }
        print(
            "[" + std::to_string(i + 1) + "/" + std::to_string(cells.size()) + "] " +
            first_line(cell.source) + " ");
        const auto executed = co_await target.execute(cell.source);
        if (executed.has_error()) {
            print("failed\n");
            co_return executed.error();
        }
        const nlohmann::json& execution = executed.value();
        const std::string status = text_field(execution, "status");
        print("· " + status + " · " + seconds(execution) + "\n");
        std::string said;
        show_outputs(
            execution, i + 1, report, [&said](const std::string& stream, const std::string& text) {
                said += stream == "stdout" ? text : std::string();
            });
        print(excerpt(said, kExcerptLinesMax));
        store(execution, cell.position, notebook);
        if (status == "ok") {
            continue;
        }
        print(excerpt(traceback_of(execution), kExcerptLinesMax * 4));
        if (!cell.may_raise || status != "error") {
            report.outcome = interrupted() ? RunOutcome::kInterrupted : RunOutcome::kFailed;
            co_return report;
        }
    }
    co_return report;
}

asio::awaitable<Result<RunReport>> run_program(RunTarget& target, std::string code) {
    const auto executed = co_await target.execute(std::move(code));
    if (executed.has_error()) {
        co_return executed.error();
    }
    const nlohmann::json& execution = executed.value();
    RunReport report;
    show_outputs(execution, 1, report, [](const std::string& stream, const std::string& text) {
        stream == "stderr" ? print_error(text) : print(text);
    });
    const std::string status = text_field(execution, "status");
    if (status != "ok") {
        print_error(traceback_of(execution));
        report.outcome = status == "interrupted" ? RunOutcome::kInterrupted : RunOutcome::kFailed;
    }
    co_return report;
}

}  // namespace cellkeep::cli
