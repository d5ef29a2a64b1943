// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_kernel.hpp"

#include "protocol/support/passed_time.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace cellkeep::session {

using nlohmann::json;
using std::chrono::steady_clock;

namespace {

json write_death(const std::optional<Death>& death) {
    return death ? json({{"kind", static_cast<int>(death->kind)}, {"detail", death->detail}})
                 : json();
}

/// A program of an older format writes none.
std::optional<Death> read_death(const json& kernel) {
    const json text = kernel.value("death", json());
    if (text.is_null()) {
        return std::nullopt;
    }
    const int kind = text.at("kind").get<int>();
    if (kind < 0 || kind > static_cast<int>(Death::Kind::kLinkBroken)) {
        throw json::other_error::create(502, "no such end of an interpreter", &kernel);
    }
    return Death{static_cast<Death::Kind>(kind), text.at("detail").get<int>()};
}

}  // namespace

json write_kernel(const PassedKernel& kernel) {
    json deaths = json::array();
    for (const auto& death : kernel.process.deaths) {
        deaths.push_back(to_ticks(death));
    }
    json waiting = json::array();
    for (const PassedRequest& request : kernel.waiting) {
        waiting.push_back(write_waiting(request));
    }
    const auto& claimed = kernel.process.claimed_end;
    return {
        {"session", kernel.process.session},
        {"info", kernel.process.info},
        {"death", write_death(kernel.process.death)},
        {"restarts", kernel.process.restarts},
        {"deaths", std::move(deaths)},
        {"oom_kills", kernel.process.oom_kills},
        {"claimed_end", claimed ? json(to_ticks(*claimed)) : json()},
        {"text_parent", kernel.text_parent},
        {"begun", kernel.begun},
        {"run", kernel.run ? write_run(*kernel.run) : json()},
        {"waiting", std::move(waiting)},
        {"shown", kernel.shown ? json(std::string(kernel.shown->frame())) : json()}};
}

PassedKernel read_kernel(
    const json& text, PassedInterpreter interpreter, const FindExecution& find) {
    PassedKernel kernel;
    kernel.process.death = read_death(text);
    if (kernel.process.death.has_value() == static_cast<bool>(interpreter.pidfd)) {
        throw json::other_error::create(502, "an interpreter is dead or has a process", &text);
    }
    if (!kernel.process.death && !text.at("info").is_object()) {
        throw json::other_error::create(502, "an interpreter that lives has said something", &text);
    }
    kernel.process.interpreter = std::move(interpreter);
    kernel.process.session = text.at("session").get<std::string>();
    kernel.process.info = text.at("info");
    kernel.process.restarts = text.at("restarts").get<std::uint64_t>();
    for (const json& death : text.at("deaths")) {
        kernel.process.deaths.push_back(
            from_ticks<steady_clock::time_point>(death.get<std::int64_t>()));
    }
    kernel.process.oom_kills = text.at("oom_kills").get<std::uint64_t>();
    if (const json& claimed = text.at("claimed_end"); !claimed.is_null()) {
        kernel.process.claimed_end =
            from_ticks<steady_clock::time_point>(claimed.get<std::int64_t>());
    }
    kernel.text_parent = text.at("text_parent").get<std::string>();
    kernel.begun = text.at("begun").get<std::uint64_t>();
    // A program of an older format writes nothing of these.
    if (const json run = text.value("run", json()); !run.is_null()) {
        kernel.run = read_run(run, find);
    }
    for (const json& waiting : text.value("waiting", json::array())) {
        kernel.waiting.push_back(read_waiting(waiting, find));
    }
    if (const json shown = text.value("shown", json()); !shown.is_null()) {
        auto message = protocol::Message::from_frame(shown.get<std::string>());
        if (message.has_value()) {
            kernel.shown = std::move(message).value();
        }
    }
    return kernel;
}

}  // namespace cellkeep::session
