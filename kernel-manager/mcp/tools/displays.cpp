// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/mcp/tools/displays.hpp"

#include "kernel-manager/mcp/limits.hpp"
#include "kernel-manager/mcp/tools/tool_answer.hpp"
#include "protocol/json.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace cellkeep::mcp {

namespace {

constexpr std::array<const char*, 4> kPictureTypes = {
    "image/png", "image/jpeg", "image/webp", "image/gif"};
constexpr std::array<const char*, 5> kTextTypes = {
    "text/plain", "text/markdown", "text/latex", "application/json", "text/html"};

/// "<IPython.core.display.Markdown object>" says nothing that another form would not say better.
bool says_only_its_class(const nlohmann::json& text) {
    if (!text.is_string()) {
        return false;
    }
    const auto& whole = text.get_ref<const std::string&>();
    return whole.starts_with('<') && whole.ends_with(" object>") &&
           whole.find(' ') + std::string_view(" object>").size() == whole.size();
}

/// Collects until its bounds are reached; what is beyond is named.
class DisplayReader {
 public:
    ShownDisplays finish() && { return std::move(shown_); }

    void add(const session::MimeBundle& bundle, bool is_result) {
        const std::string_view text = bundle.data.text();
        if (text.size() > room_) {
            name("a display", text.size());
            return;
        }
        room_ -= text.size();
        const auto data = protocol::parse_json_object(text, "display");
        if (data.has_error()) {
            return;  // a guest that lies about itself
        }
        const bool drawn = add_picture(data.value());
        add_text(data.value(), is_result, drawn);
    }

 private:
    bool add_picture(const nlohmann::json& data) {
        for (const char* type : kPictureTypes) {
            const auto found = data.find(type);
            if (found == data.end() || !found->is_string()) {
                continue;
            }
            std::string base64 = found->get<std::string>();
            std::erase_if(base64, [](char c) { return c == '\n' || c == '\r' || c == ' '; });
            const std::size_t bytes = base64.size() / 4 * 3;
            if (base64.size() > pictures_room_) {
                name(type, bytes);
                return true;
            }
            pictures_room_ -= base64.size();
            shown_.pictures.push_back(
                {{"type", "image"}, {"data", std::move(base64)}, {"mimeType", type}});
            shown_.displays.push_back({{"type", type}, {"bytes", bytes}});
            return true;
        }
        return false;
    }

    void add_text(const nlohmann::json& data, bool is_result, bool drawn) {
        for (const char* type : kTextTypes) {
            const auto found = data.find(type);
            if (found == data.end() || (data.size() > 1 && says_only_its_class(*found))) {
                continue;
            }
            const std::string whole =
                found->is_string() ? found->get<std::string>() : protocol::dump_json(*found);
            std::string text = show_text(whole).text;
            if (is_result) {
                shown_.result = std::move(text);
            } else if (!drawn) {
                shown_.text += text + "\n";
                shown_.displays.push_back({{"type", type}, {"text", std::move(text)}});
            }
            return;
        }
        // What stands in the place of another form is not the one to name.
        auto form = data.begin();
        while (form != data.end() && says_only_its_class(form.value())) {
            ++form;
        }
        if (!drawn && form != data.end()) {
            name(
                form.key(),
                form.value().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).size());
        }
    }

    void name(const std::string& what, std::size_t bytes) {
        shown_.text +=
            "[" + what + ", " + std::to_string(bytes) + " bytes, not shown: save it to a file]\n";
        shown_.displays.push_back({{"type", what}, {"bytes", bytes}, {"shown", false}});
    }

    ShownDisplays shown_;
    std::size_t room_ = kDisplaysBytesMax;
    std::size_t pictures_room_ = kPicturesBytesMax;
};

}  // namespace

ShownDisplays show_displays(const std::vector<session::NotebookOutput>& outputs) {
    DisplayReader reader;
    for (const session::NotebookOutput& output : outputs) {
        if (const auto* display = std::get_if<session::DisplayOutput>(&output)) {
            if (display->bundle != nullptr) {
                reader.add(*display->bundle, false);
            }
        } else if (const auto* result = std::get_if<session::ResultOutput>(&output)) {
            reader.add(result->bundle, true);
        }
    }
    ShownDisplays shown = std::move(reader).finish();
    shown.text = show_text(shown.text).text;
    return shown;
}

}  // namespace cellkeep::mcp
