// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpp/process/interpreter_process.hpp"

#include "kernels/cpp/compile/compile_limit.hpp"
#include "kernels/cpp/compile/compiler.hpp"
#include "kernels/cpp/io/console.hpp"
#include "kernels/cpp/io/publish.hpp"
#include "kernels/cpp/process/faults.hpp"
#include "kernels/cpp/process/run_in_child.hpp"
#include "kernels/cpp/process/snapshot.hpp"
#include "kernels/cpp/text/completeness.hpp"
#include "kernels/cpp/text/cursor.hpp"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace cellkeep::cpp {

namespace {

using nlohmann::json;

std::string to_line(const json& event) {
    return event.dump(-1, ' ', false, json::error_handler_t::replace);
}

json done(std::uint64_t id, const std::string& status) {
    return {{"event", "done"}, {"id", id}, {"status", status}};
}

json failure_event(std::uint64_t id, const CompileFailure& failure) {
    json event = done(id, "error");
    event["name"] = failure.name;
    event["message"] = failure.message;
    event["kind"] = failure.kind;
    event["traceback"] = failure.traceback;
    if (failure.line > 0) {
        event["line"] = failure.line;
        event["column"] = failure.column;
    }
    return event;
}

json to_json(const std::vector<Shadowed>& shadowed) {
    json list = json::array();
    for (const Shadowed& one : shadowed) {
        list.push_back({{"name", one.name}, {"place", one.place}});
    }
    return list;
}

std::vector<Shadowed> shadowed_of(const std::string& text) {
    std::vector<Shadowed> list;
    const json parsed = json::parse(text, nullptr, false);
    if (parsed.is_array()) {
        for (const json& one : parsed) {
            list.push_back({one.value("name", std::uint64_t{0}), one.value("place", 0U)});
        }
    }
    return list;
}

CompileFailure failure_of(const std::string& code, const Flaw& flaw) {
    CompileFailure failure;
    failure.name = "CompileError";
    failure.message = flaw.message;
    failure.kind = "syntax";
    failure.line =
        1 + static_cast<unsigned>(std::count(
                code.begin(), code.begin() + static_cast<std::ptrdiff_t>(flaw.at), '\n'));
    const std::size_t newline = code.substr(0, flaw.at).rfind('\n');
    const std::size_t first = newline == std::string::npos ? 0 : newline + 1;
    failure.column =
        static_cast<unsigned>(1 + point_of_byte(code, flaw.at) - point_of_byte(code, first));
    failure.traceback = {
        std::to_string(failure.line) + ":" + std::to_string(failure.column) +
        ": error: " + failure.message};
    return failure;
}

/// For a cell that clang does not come to an end with. taken: what it has used until then.
CompileFailure endless(const std::string& taken) {
    const std::string said = "clang has not come to an end with this cell in " + taken +
                             ": is a bracket of a macro or a #if not closed?";
    return {"CompileError", said, "syntax", 0, 0, {"error: " + said}};
}

CompileLimit::Failures limit_failures(std::uint64_t id) {
    return {
        .time = to_line(
            failure_event(id, endless(std::to_string(kCompileSeconds) + " s of processor time"))),
        .memory = to_line(
            failure_event(id, endless(std::to_string(kCompileBytes >> 30U) + " GiB of memory")))};
}

/// All that was printed goes out before the cell is said to be done.
void write_out() {
    std::cout.flush();
    std::clog.flush();
    // No other files: one that a thread reads from would be waited for.
    (void)std::fflush(stdout);
    (void)std::fflush(stderr);
}

class InterpreterProcess {
 public:
    InterpreterProcess(Channel& channel, pid_t supervisor, std::unique_ptr<Compiler> compiler)
        : channel_(channel), supervisor_(supervisor), compiler_(std::move(compiler)) {}

    void serve() {
        std::string line;
        while (channel_.read_line(line)) {
            const json request = json::parse(line, nullptr, false);
            if (!request.is_object() || !request.contains("id")) {
                continue;  // a late answer, to a question that an interrupt has ended
            }
            answer(request);
        }
        compiler_->end();
        write_out();
    }

 private:
    void answer(const json& request) {
        const std::string what = request.value("request", "");
        const auto id = request["id"].get<std::uint64_t>();
        if (what == "execute") {
            execute(request, id);
        } else if (what == "complete") {
            finish(in_child(no_matches(request, id), [&] { return complete(request, id); }));
        } else if (what == "inspect") {
            finish(in_child(not_found(id), [&] { return inspect(request, id); }));
        } else if (what == "is_complete") {
            const Completeness found = completeness_of(request.value("code", ""));
            json event = done(id, "ok");
            // The status of the answer is the code's.
            event["status"] = found.status;
            event["indent"] = found.indent;
            finish(event);
        } else if (what == "adopt") {
            finish(adopt(request, id));
        } else {
            json event = done(id, "error");
            event["name"] = "NotImplementedError";
            event["message"] = "C++ has no " + what;
            finish(event);
        }
    }

    void finish(const json& event) { channel_.say(Word::kDone, to_line(event)); }

    /// The state is to be what it was before the cell: this process ends, and says what its
    /// fallback is to say, or to do.
    [[noreturn]] void go_back(Word word, const json& what) {
        write_out();
        channel_.say(word, to_line(what));
        ::_exit(0);
    }

    void execute(const json& request, std::uint64_t id) {
        const std::string code = request.value("code", "");
        in_the_way_.clear();
        may_hide_ = true;
        for (;;) {
            const Snapshot snapshot = take_snapshot(channel_, supervisor_);
            if (snapshot.side != Snapshot::Side::kTakenUp) {
                // After the copy was taken: what a failed cell would have replaced is still there.
                (void)compiler_->hide(in_the_way_);
                run_cell(request, id, code, snapshot.side == Snapshot::Side::kOriginal);
                return;
            }
            if (snapshot.why.empty()) {
                return;  // the supervisor has said what happened
            }
            may_hide_ = add_in_the_way(shadowed_of(snapshot.why));
        }
    }

    /// False if there is nothing new: hiding does not help.
    bool add_in_the_way(const std::vector<Shadowed>& more) {
        const std::size_t before = in_the_way_.size();
        for (const Shadowed& one : more) {
            if (std::find(in_the_way_.begin(), in_the_way_.end(), one) == in_the_way_.end()) {
                in_the_way_.push_back(one);
            }
        }
        return in_the_way_.size() > before;
    }

    void run_cell(
        const json& request, std::uint64_t id, const std::string& code, bool has_fallback) {
        if (!has_fallback) {
            channel_.say(Word::kFallback, "0 0");
            std::cerr << "cellkeep: no room for a copy of the process: if this cell fails, the "
                         "session may end"
                      << std::endl;
        }
        const pid_t self = ::getpid();
        const std::size_t threads = thread_count();
        const CellRuns runs(id);
        want_values(!request.value("silent", false));
        allow_input(request.value("allow_stdin", false));
        if (const auto flaw = flaw_of(code)) {
            finish(failure_event(id, failure_of(code, *flaw)));
            return;
        }
        // Threads would not survive going back; so what does not compile is found in a child.
        if (threads > 1 && has_fallback && !compiles_in_child(request, id, code)) {
            return;
        }
        std::optional<CompileLimit> limit(std::in_place, channel_, limit_failures(id));
        const Compiled compiled = compiler_->compile(code, request.value("count", 0U));
        limit.reset();
        if (may_hide_ && !compiled.in_the_way.empty()) {
            go_back(Word::kAgain, to_json(compiled.in_the_way));
        }
        std::cerr << compiled.warnings << std::flush;
        if (compiled.failure) {
            go_back(Word::kFailed, failure_event(id, *compiled.failure));
        }
        try {
            if (const auto failure = compiler_->run()) {
                go_back(Word::kFailed, failure_event(id, *failure));
            }
        } catch (...) {
            // A cell may throw any type, also one that this program does not know.
            if (::getpid() == self) {
                go_back(Word::kFailed, exception_event(id));
            }
        }
        write_out();
        if (::getpid() != self) {
            ::_exit(0);  // a child that the cell forked and let run to the cell's end
        }
        allow_input(false);
        json event = done(id, "ok");
        if (const auto exit_code = take_exit_code()) {
            event["exit_code"] = *exit_code;
        }
        finish(event);
    }

    /// True if the cell can be compiled here: it compiles, or collides with earlier ones, which
    /// are then hidden.
    bool compiles_in_child(const json& request, std::uint64_t id, const std::string& code) {
        for (;;) {
            const std::optional<std::string> found = run_in_child([&] {
                (void)compiler_->hide(in_the_way_);
                const Compiled compiled = compiler_->compile(code, request.value("count", 0U));
                json said = {{"again", to_json(compiled.in_the_way)}};
                if (compiled.failure) {
                    said["failure"] = failure_event(id, *compiled.failure);
                    said["warnings"] = compiled.warnings;
                }
                return to_line(said);
            });
            const json said = json::parse(found.value_or("null"), nullptr, false);
            if (!said.is_object()) {
                return true;  // it ended clang: let it do so where there is a way back
            }
            if (may_hide_ && !said["again"].empty()) {
                may_hide_ = add_in_the_way(shadowed_of(said["again"].dump()));
                continue;
            }
            if (said.contains("failure")) {
                std::cerr << said["warnings"].get<std::string>() << std::flush;
                finish(said["failure"]);
                return false;
            }
            (void)compiler_->hide(in_the_way_);
            return true;
        }
    }

    /// The answer is found in a child, which may ruin the compiler; `otherwise` if it ends without.
    template <class Find>
    json in_child(json otherwise, const Find& find) {
        const std::optional<std::string> found = run_in_child([&] { return to_line(find()); });
        json event = json::parse(found.value_or("null"), nullptr, false);
        return event.is_object() ? std::move(event) : std::move(otherwise);
    }

    static json no_matches(const json& request, std::uint64_t id) {
        json event = done(id, "ok");
        event["matches"] = json::array();
        event["start"] = event["end"] = request.value("cursor", std::size_t{0});
        return event;
    }

    static json not_found(std::uint64_t id) {
        json event = done(id, "ok");
        event["found"] = false;
        event["data"] = json::object();
        return event;
    }

    json complete(const json& request, std::uint64_t id) {
        const std::string code = request.value("code", "");
        const std::size_t cursor = byte_of_point(code, request.value("cursor", std::size_t{0}));
        std::size_t start = cursor;
        json event = done(id, "ok");
        event["matches"] = compiler_->complete(code, cursor, start);
        event["start"] = point_of_byte(code, start);
        event["end"] = point_of_byte(code, cursor);
        return event;
    }

    json inspect(const json& request, std::uint64_t id) {
        const std::string code = request.value("code", "");
        const std::size_t cursor = byte_of_point(code, request.value("cursor", std::size_t{0}));
        json event = done(id, "ok");
        const std::string expression = expression_at(code, cursor);
        const auto found = expression.empty() ? std::nullopt : compiler_->inspect(expression);
        event["found"] = found.has_value();
        event["data"] = json::object();
        if (found) {
            event["data"]["text/plain"] = *found;
        }
        return event;
    }

    json adopt(const json& request, std::uint64_t id) {
        if (request.contains("env") && request["env"].is_object()) {
            for (const auto& [name, value] : request["env"].items()) {
                if (value.is_string()) {
                    // NOLINTNEXTLINE(concurrency-mt-unsafe): before its first cell.
                    (void)::setenv(name.c_str(), value.get<std::string>().c_str(), 1);
                }
            }
        }
        const std::string directory = request.value("directory", "");
        if (!directory.empty() && ::chdir(directory.c_str()) != 0) {
            json event = done(id, "error");
            event["name"] = "OSError";
            event["message"] = "chdir " + directory + ": " + std::generic_category().message(errno);
            return event;
        }
        return done(id, "ok");
    }

    Channel& channel_;
    pid_t supervisor_;
    std::unique_ptr<Compiler> compiler_;
    std::vector<Shadowed> in_the_way_;  // of the running cell, so far
    bool may_hide_ = true;              // the last time there was something new
};

}  // namespace

int run_interpreter(Channel& channel, pid_t supervisor, const std::string& folder) {
    publish_to(channel);
    install_console(channel);
    std::string error;
    std::unique_ptr<Compiler> compiler = Compiler::create(
        {folder + "/include", folder + "/preamble.pch", publish_functions()}, error);
    if (compiler == nullptr) {
        std::cerr << "cellkeep-driver-cpp: " << error << std::endl;
        return 1;
    }
    // After clang, which has handlers of its own.
    install_fault_handlers(channel);
    channel.say(Word::kEvent, to_line({{"event", "ready"}, {"version", Compiler::version()}}));
    InterpreterProcess(channel, supervisor, std::move(compiler)).serve();
    return 0;
}

}  // namespace cellkeep::cpp
