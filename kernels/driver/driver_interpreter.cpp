// SPDX-License-Identifier: Apache-2.0
//
// Requests: what the driver is asked, and what clients are answered.
#include "kernels/driver/driver_interpreter.hpp"

#include "protocol/json.hpp"
#include "protocol/support/syscall.hpp"

#include <sys/signalfd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>
#include <vector>

namespace cellkeep::kernels::driver {

namespace {

using nlohmann::json;

constexpr int kExitCodeMax = 255;

/// SIGINT from now on waits in the descriptor that this returns.
Result<UniqueFd> take_over_interrupts() {
    sigset_t set{};
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    if (const int error = ::pthread_sigmask(SIG_BLOCK, &set, nullptr); error != 0) {
        return Error::from_errno(error, "pthread_sigmask(SIGINT)");
    }
    const int fd = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0) {
        return Error::from_errno(errno, "signalfd");
    }
    return UniqueFd(fd);
}

Result<protocol::KernelJson> read_kernel_json(const std::string& folder) {
    const std::string path = folder + "/" + std::string(protocol::kKernelJsonName);
    const auto read = [&]() -> Result<protocol::KernelJson> {
        BOOST_OUTCOME_TRY(const std::string text, read_file(path, protocol::kKernelJsonBytesMax));
        return protocol::parse_kernel_json(text);
    };
    Result<protocol::KernelJson> about = read();
    if (!about) {
        return Error(ErrorCode::kInvalidArgument, path + ": " + about.error().message());
    }
    return about;
}

Result<Command> make_command(const protocol::KernelJson& about, const Options& options) {
    std::map<std::string, std::string> values = options.values;
    values["folder"] = options.folder;
    Command command;
    for (const std::string& word : about.argv) {
        BOOST_OUTCOME_TRY(std::string expanded, protocol::expand_placeholders(word, values));
        command.argv.push_back(std::move(expanded));
    }
    for (const auto& [name, value] : about.env) {
        BOOST_OUTCOME_TRY(std::string expanded, protocol::expand_placeholders(value, values));
        command.env.emplace(name, std::move(expanded));
    }
    return command;
}

std::size_t count_code_points(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    }));
}

/// xeus says -1 for the end of the code.
json cursor_in(const std::string& code, int cursor) {
    const std::size_t end = count_code_points(code);
    return cursor < 0 ? end : std::min(static_cast<std::size_t>(cursor), end);
}

json list_field(const json& object, const char* name) {
    const auto found = object.find(name);
    return found != object.end() && found->is_array() ? *found : json::array();
}

json number_or(const json& object, const char* name, const json& fallback) {
    const auto found = object.find(name);
    return found != object.end() && found->is_number_integer() ? *found : fallback;
}

/// What Cellkeep tells beside the specification (protocol/PROTOCOL.md).
json make_metadata(const json& done, bool failed) {
    json metadata = object_field(done, "metadata");
    json own = json::object();
    if (const json code = number_or(done, "exit_code", nullptr);
        code.is_number() && code >= 0 && code <= kExitCodeMax) {
        own["exit_code"] = code;
    }
    if (failed) {
        own["error"] = {
            {"kind", text_field(done, "kind", "runtime")},
            {"line", number_or(done, "line", nullptr)},
            {"column", number_or(done, "column", nullptr)}};
    }
    if (!own.empty()) {
        metadata["cellkeep"] = std::move(own);
    }
    return metadata;
}

/// JupyterLab reads the types of matches here; every one needs its place.
json make_match_types(const json& types, const json& start, const json& end) {
    json list = json::array();
    for (const json& type : types) {
        if (type.is_object() && type.contains("text")) {
            list.push_back(type);
            list.back()["start"] = start;
            list.back()["end"] = end;
        }
    }
    return list;
}

}  // namespace

Result<std::unique_ptr<Interpreter>> DriverInterpreter::create(
    const KernelParts& parts, const Options& options) {
    BOOST_OUTCOME_TRY(protocol::KernelJson about, read_kernel_json(options.folder));
    BOOST_OUTCOME_TRY(const Command command, make_command(about, options));
    BOOST_OUTCOME_TRY(UniqueFd signals, take_over_interrupts());
    BOOST_OUTCOME_TRY(DriverProcess process, DriverProcess::start(command));
    std::unique_ptr<DriverInterpreter> interpreter(new DriverInterpreter(
        parts, std::move(about), options, std::move(process), std::move(signals)));
    BOOST_OUTCOME_TRY(interpreter->wait_until_ready());
    return std::unique_ptr<Interpreter>(std::move(interpreter));
}

DriverInterpreter::DriverInterpreter(
    const KernelParts& parts,
    protocol::KernelJson about,
    Options options,
    DriverProcess process,
    UniqueFd signals)
    : Interpreter(parts),
      about_(std::move(about)),
      options_(std::move(options)),
      process_(std::move(process)),
      signals_(std::move(signals)),
      publisher_(parts) {}

std::optional<json> DriverInterpreter::ask(json request, Interruptible interruptible) {
    if (fault_) {
        return std::nullopt;
    }
    if (interruptible == Interruptible::kYes) {
        settle_interrupt();
    } else {
        interrupted_ = false;  // what the driver remembers it forgets now
    }
    running_ = ++last_id_;
    done_.reset();
    interruptible_ = interruptible == Interruptible::kYes;
    request["id"] = *running_;
    process_.send(protocol::dump_json(request));
    Wanted wanted;
    if (!interruptible_) {
        wanted.deadline = Clock::now() + options_.answer_max;
    }
    while (!done_ && !fault_) {
        wanted.link = awaits_input_ ? parts().inbox.fd() : -1;
        switch (wait(wanted)) {
            case Woken::kLink:
                answer_input();
                break;
            case Woken::kDeadline:
                set_fault("it does not answer " + text_field(request, "request"));
                break;
            case Woken::kOther:
                break;
        }
    }
    running_.reset();
    interruptible_ = false;
    awaits_input_ = false;
    allow_stdin_ = false;
    return std::exchange(done_, std::nullopt);
}

/// An interrupt may have reached the driver when its cell had just ended: it forgets it when it
/// reads this, before the next cell begins.
void DriverInterpreter::settle_interrupt() {
    if (std::exchange(interrupted_, false) && about_.interrupt == protocol::InterruptBy::kSignal) {
        (void)ask({{"request", "is_complete"}, {"code", ""}}, Interruptible::kNo);
    }
}

Reply DriverInterpreter::execute(const ExecuteRequest& request, int count) {
    publisher_.begin(count, request.silent);
    keeps_output_ = request.store_history;
    if (request.store_history) {
        history_.add(count, request.code);
    }
    // Before allow_stdin_ is set: a question that an earlier interrupt left behind is nobody's.
    settle_interrupt();
    allow_stdin_ = request.allow_stdin;
    const std::optional<json> done =
        ask({{"request", "execute"},
             {"code", request.code},
             {"count", count},
             {"silent", request.silent},
             {"store_history", request.store_history},
             {"allow_stdin", request.allow_stdin},
             {"user_expressions", request.user_expressions}},
            Interruptible::kYes);
    keeps_output_ = false;
    if (!done) {
        return fault_reply();
    }
    json content{
        {"status", "ok"},
        {"payload", list_field(*done, "payload")},
        {"user_expressions", object_field(*done, "user_expressions")}};
    const bool failed = !is_ok(done);
    if (failed) {
        const CodeFault fault = read_fault(*done);
        publisher_.publish_error(fault);
        content["status"] = "error";
        content["ename"] = fault.name;
        content["evalue"] = fault.message;
        content["traceback"] = fault.traceback;
    }
    return {std::move(content), make_metadata(*done, failed)};
}

Reply DriverInterpreter::fault_reply() {
    const CodeFault fault{
        "DriverError", fault_->message(), json::array({"DriverError: " + fault_->message()})};
    publisher_.publish_error(fault);
    json content = make_error_content(fault.name, fault.message);
    content["traceback"] = fault.traceback;
    return {std::move(content), make_metadata({{"kind", "driver"}}, true)};
}

json DriverInterpreter::complete_request_impl(const std::string& code, int cursor_pos) {
    const json cursor = cursor_in(code, cursor_pos);
    const auto done =
        ask({{"request", "complete"}, {"code", code}, {"cursor", cursor}}, Interruptible::kNo);
    if (!is_ok(done)) {
        return {
            {"status", "ok"},
            {"matches", json::array()},
            {"cursor_start", cursor},
            {"cursor_end", cursor},
            {"metadata", json::object()}};
    }
    const json start = number_or(*done, "start", cursor);
    const json end = number_or(*done, "end", cursor);
    json metadata = object_field(*done, "metadata");
    if (const json types = list_field(*done, "types"); !types.empty()) {
        metadata["_jupyter_types_experimental"] = make_match_types(types, start, end);
    }
    return {
        {"status", "ok"},
        {"matches", list_field(*done, "matches")},
        {"cursor_start", start},
        {"cursor_end", end},
        {"metadata", std::move(metadata)}};
}

json DriverInterpreter::inspect_request_impl(
    const std::string& code, int cursor_pos, int detail_level) {
    const auto done =
        ask({{"request", "inspect"},
             {"code", code},
             {"cursor", cursor_in(code, cursor_pos)},
             {"detail", detail_level}},
            Interruptible::kNo);
    json content{
        {"status", "ok"}, {"found", false}, {"data", json::object()}, {"metadata", json::object()}};
    if (is_ok(done)) {
        content["data"] = object_field(*done, "data");
        content["metadata"] = object_field(*done, "metadata");
        const auto found = done->find("found");
        content["found"] = found != done->end() && found->is_boolean() && found->get<bool>();
    }
    return content;
}

json DriverInterpreter::is_complete_request_impl(const std::string& code) {
    const auto done = ask({{"request", "is_complete"}, {"code", code}}, Interruptible::kNo);
    const std::string status = done ? text_field(*done, "status") : "";
    if (status == "incomplete") {
        return {{"status", status}, {"indent", text_field(*done, "indent")}};
    }
    const bool known = status == "complete" || status == "invalid";
    return {{"status", known ? status : "unknown"}};
}

json DriverInterpreter::kernel_info_request_impl() {
    json language{
        {"name", about_.language}, {"mimetype", "text/plain"}, {"file_extension", ".txt"}};
    language.update(about_.language_info);
    language.update(object_field(ready_, "language_info"));
    const std::string version = text_field(ready_, "version");
    language["version"] = version;
    const bool debugger = answers("debug_request");
    json links = list_field(ready_, "help_links");
    return {
        {"status", "ok"},
        {"implementation", "cellkeep-" + about_.language},
        {"implementation_version", CELLKEEP_VERSION},
        {"language_info", std::move(language)},
        {"banner", text_field(ready_, "banner", about_.display_name + " " + version)},
        {"help_links", links.empty() ? about_.help_links : std::move(links)},
        {"debugger", debugger},
        {"supported_features", debugger ? json::array({"debugger"}) : json::array()}};
}

json DriverInterpreter::adopt(const json& request) {
    const auto done =
        ask({{"request", "adopt"},
             {"env", object_field(request, "env")},
             {"directory", text_field(request, "working_directory")}},
            Interruptible::kNo);
    if (is_ok(done)) {
        return {{"status", "ok"}};
    }
    if (!done) {
        return make_error_content("DriverError", fault_->message());
    }
    const CodeFault fault = read_fault(*done);
    return make_error_content(fault.name, fault.message);
}

void DriverInterpreter::end() {
    if (!std::exchange(ended_, true)) {
        process_.end();
    }
}

}  // namespace cellkeep::kernels::driver
