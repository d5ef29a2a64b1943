// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/io/publish.hpp"

#include "kernels/cpp/include/cellkeep/publish_abi.h"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <iostream>
#include <optional>
#include <string_view>
#include <utility>

namespace cellkeep::cpp {

namespace {

constexpr int kExitCodeBits = 0xFF;  // what a parent sees of an exit status, wait(2)
constexpr std::size_t kShownBytesMax = kLineBytesMax / 2;  // base64 and escapes make it longer

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): cells call functions of C.
Channel* g_publish_channel = nullptr;
bool g_values_wanted = true;
std::optional<int> g_exit_code;  // of the running cell's main
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

enum class Kind { kValue = 0, kDisplay = 1, kUpdate = 2 };

bool is_json(std::string_view mime) {
    return mime == "application/json" || mime.ends_with("+json");
}

bool is_text(std::string_view mime) {
    return mime.starts_with("text/") || mime.ends_with("+xml") ||
           mime == "application/javascript" || mime == "application/xml";
}

std::string base64(std::string_view bytes) {
    constexpr std::string_view kDigits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        std::uint32_t group = 0;
        const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
        for (std::size_t index = 0; index < 3; ++index) {
            group =
                group << 8U | (index < count ? static_cast<unsigned char>(bytes[at + index]) : 0U);
        }
        for (std::size_t digit = 0; digit < 4; ++digit) {
            text += digit <= count ? kDigits[group >> (18U - 6U * digit) & 63U] : '=';
        }
    }
    return text;
}

/// Whatever the cell calls its bytes, what goes out is valid.
nlohmann::json value_of(std::string_view mime, std::string_view data) {
    if (is_json(mime)) {
        nlohmann::json parsed = nlohmann::json::parse(data, nullptr, false);
        if (!parsed.is_discarded()) {
            return parsed;
        }
        return std::string(data);
    }
    return is_text(mime) ? std::string(data) : base64(data);
}

/// cout and printf share stdout's buffer: what was printed before is seen before.
void write_out_before() {
    (void)std::fflush(stdout);
}

void say(const nlohmann::json& event) {
    if (!g_publish_channel->is_ours()) {
        std::cerr << "cellkeep: a process that a cell has forked shows nothing" << std::endl;
        return;
    }
    write_out_before();
    g_publish_channel->say(
        Word::kEvent, event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

void publish_to(Channel& channel) {
    g_publish_channel = &channel;
}

void want_values(bool wanted) {
    g_values_wanted = wanted;
}

extern "C" void cellkeep_cpp_publish(
    int kind, const cellkeep_cpp_item* items, std::size_t count, const char* display_id) {
    const auto what = static_cast<Kind>(kind);
    if (what == Kind::kValue && !g_values_wanted) {
        return;
    }
    nlohmann::json data = nlohmann::json::object();
    std::size_t bytes = 0;
    for (std::size_t index = 0; index < count; ++index) {
        bytes += items[index].size;
        if (bytes > kShownBytesMax) {
            std::cerr << "cellkeep: not shown, more than " << (kShownBytesMax >> 20U) << " MiB"
                      << std::endl;
            return;
        }
        data[items[index].mime] =
            value_of(items[index].mime, {items[index].data, items[index].size});
    }
    nlohmann::json event = {
        {"event", what == Kind::kValue ? "result" : "display"},
        {"data", std::move(data)},
        {"metadata", nlohmann::json::object()}};
    if (what != Kind::kValue && *display_id != '\0') {
        event["display_id"] = display_id;
        event["update"] = what == Kind::kUpdate;
    }
    say(event);
}

extern "C" {
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): cells write it.
unsigned cellkeep_cpp_line = 0;
}

extern "C" void cellkeep_cpp_returned(int code) {
    g_exit_code = code & kExitCodeBits;
    if (code != 0) {
        write_out_before();
        std::cerr << "cellkeep: main returned " << code << std::endl;
    }
}

std::optional<int> take_exit_code() {
    return std::exchange(g_exit_code, std::nullopt);
}

extern "C" void cellkeep_cpp_clear(int wait) {
    say({{"event", "clear"}, {"wait", wait != 0}});
}

std::vector<std::pair<std::string, void*>> publish_functions() {
    return {
        {"cellkeep_cpp_publish", reinterpret_cast<void*>(&cellkeep_cpp_publish)},
        {"cellkeep_cpp_clear", reinterpret_cast<void*>(&cellkeep_cpp_clear)},
        {"cellkeep_cpp_returned", reinterpret_cast<void*>(&cellkeep_cpp_returned)},
        {"cellkeep_cpp_line", &cellkeep_cpp_line}};
}

}  // namespace cellkeep::cpp
