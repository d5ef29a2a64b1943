// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/process/command_table.hpp"

#include "protocol/support/syscall.hpp"
#include "sandbox/policy/policy.hpp"
#include "sandbox/shared/messages.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <utility>

namespace cellkeep::process {

namespace {

constexpr std::size_t kIdBytes = 12;
/// Looks a program up as people at a terminal expect it, and becomes it.
constexpr const char* kShell = "/bin/sh";
constexpr const char* kBecome = "exec \"$@\"";

Error no_command(const std::string& id) {
    return {ErrorCode::kNotFound, "the session has no process " + id};
}

Error session_ended() {
    return {ErrorCode::kConflict, "process: the session has ended"};
}

std::vector<std::string> find_program(const std::vector<std::string>& argv) {
    if (argv.empty() || argv[0].starts_with('/')) {
        return argv;
    }
    std::vector<std::string> found{kShell, "-c", kBecome, "sh"};
    found.insert(found.end(), argv.begin(), argv.end());
    return found;
}

/// What a start's failure means to who asked for it.
Error explain(const Error& error) {
    if (error.code() == ErrorCode::kSystem && error.errno_value() == EAGAIN) {
        return {
            ErrorCode::kLimitExceeded,
            "process: the session has as many processes and threads as it may",
            "End some of them, or create the session with a higher limit of processes."};
    }
    return error;
}

/// As the sandbox counts them (sandbox/shared/messages.hpp).
std::size_t text_bytes(const sandbox::WorkerSpec& spec) {
    std::size_t bytes = spec.working_directory.size() + 1;
    for (const auto* list : {&spec.argv, &spec.env}) {
        for (const std::string& item : *list) {
            bytes += item.size() + 1;
        }
    }
    return bytes;
}

CommandEnd end_of(const sandbox::WorkerExit& exit) {
    if (!exit.failure.empty()) {
        return {CommandEnd::Kind::kFailed, 0, exit.failure};
    }
    return {
        exit.signaled ? CommandEnd::Kind::kSignaled : CommandEnd::Kind::kExited, exit.status, {}};
}

}  // namespace

CommandTable::CommandTable(boost::asio::io_context& io, Hooks hooks, KeepAlive keep_session)
    : io_(io),
      hooks_(std::move(hooks)),
      keep_session_(std::move(keep_session)),
      next_period_(io, keep_session_) {}

CommandTable::~CommandTable() {
    close();
}

Status CommandTable::check_start(const CommandOrder& order) const {
    if (closed_) {
        return session_ended();
    }
    if (running() >= kCommandsMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "process: the session runs " + std::to_string(kCommandsMax) +
                " processes beside its interpreters, and more may not run at once",
            "Wait until one has ended, or end one.");
    }
    const auto terminals = std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) {
        return entry.command->has_terminal() && !entry.command->end();
    });
    if (order.terminal && static_cast<std::size_t>(terminals) >= kTerminalsMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "process: the session has " + std::to_string(kTerminalsMax) +
                " terminals, and more may not be open at once",
            "End one of them.");
    }
    return ok();
}

Result<sandbox::WorkerSpec> CommandTable::make_spec(const CommandOrder& order) const {
    sandbox::WorkerSpec spec;
    spec.argv = find_program(order.argv);
    auto env = order.env;
    if (order.terminal) {
        env.emplace("TERM", order.terminal->kind);
    }
    spec.env = hooks_.environment(env);
    spec.working_directory = order.directory.empty() ? hooks_.directory()
                             : order.directory.starts_with('/')
                                 ? order.directory
                                 : std::string(sandbox::kWorkspacePath) + "/" + order.directory;
    spec.group = sandbox::kCommandGroup;
    if (text_bytes(spec) > sandbox::kStartTextBytesMax) {
        return Error(
            ErrorCode::kInvalidArgument,
            "process: its arguments, its variables and those of the session have more than " +
                std::to_string(sandbox::kStartTextBytesMax) + " bytes together");
    }
    return spec;
}

boost::asio::awaitable<Result<std::shared_ptr<Command>>> CommandTable::start(CommandOrder order) {
    const auto session = keep_session_();
    BOOST_OUTCOME_CO_TRY(check_start(order));
    hooks_.wake();
    hooks_.note_use();
    BOOST_OUTCOME_CO_TRY(const std::string digits, random_hex(kIdBytes));
    BOOST_OUTCOME_CO_TRY(sandbox::WorkerSpec spec, make_spec(order));
    BOOST_OUTCOME_CO_TRY(
        const auto command,
        Command::create(
            io_, "prc_" + digits, order, spec, [this](std::size_t bytes) { note_output(bytes); }));
    const auto born = std::make_shared<Completion<Status>>(io_);
    auto begun = hooks_.begin(std::move(spec), [born, command](Result<sandbox::Worker> worker) {
        if (worker.has_value()) {
            command->note_born(worker.value().inside);
        }
        born->set(worker.has_value() ? Status(ok()) : Status(worker.error()));
    });
    if (begun.has_error()) {
        co_return explain(begun.error());
    }
    entries_.push_back({command, std::move(begun).value(), born, false});
    const Status done = co_await Completion<Status>::wait(born);
    if (done.has_value()) {
        co_return command;
    }
    if (!command->end()) {
        command->finish({CommandEnd::Kind::kFailed, 0, done.error().message()});
        forget(command->id());
    }
    co_return explain(done.error());
}

std::vector<std::shared_ptr<Command>> CommandTable::list() const {
    std::vector<std::shared_ptr<Command>> commands;
    for (const Entry& entry : entries_) {
        commands.push_back(entry.command);
    }
    return commands;
}

std::shared_ptr<Command> CommandTable::find(const std::string& id) const {
    for (const Entry& entry : entries_) {
        if (entry.command->id() == id) {
            return entry.command;
        }
    }
    return nullptr;
}

CommandTable::Entry* CommandTable::find_entry(const std::string& id) {
    const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
        return entry.command->id() == id;
    });
    return found == entries_.end() ? nullptr : &*found;
}

Result<CommandTable::Entry*> CommandTable::find_running(const std::string& id) {
    Entry* entry = find_entry(id);
    if (entry == nullptr) {
        return no_command(id);
    }
    if (closed_) {
        return session_ended();
    }
    if (entry->command->end()) {
        return Error(ErrorCode::kConflict, "process: it has ended");
    }
    return entry;
}

Status CommandTable::write(const std::string& id, std::string_view text, bool last) {
    BOOST_OUTCOME_TRY(Entry * entry, find_running(id));
    hooks_.wake();
    hooks_.note_use();
    BOOST_OUTCOME_TRY(entry->command->write(text));
    return last ? entry->command->finish_input() : Status(ok());
}

Status CommandTable::signal(const std::string& id, int number) {
    BOOST_OUTCOME_TRY(Entry * entry, find_running(id));
    hooks_.wake();
    hooks_.note_use();
    return hooks_.signal(entry->start->id(), number);
}

Status CommandTable::resize(const std::string& id, TerminalSize size) {
    BOOST_OUTCOME_TRY(Entry * entry, find_running(id));
    hooks_.wake();
    hooks_.note_use();
    return entry->command->resize(size);
}

Status CommandTable::remove(const std::string& id) {
    Entry* entry = find_entry(id);
    if (entry == nullptr) {
        return no_command(id);
    }
    if (entry->command->end()) {
        forget(id);
        return ok();
    }
    entry->forget = true;
    return signal(id, SIGKILL);
}

void CommandTable::on_worker_exit(const sandbox::WorkerExit& exit) {
    for (const Entry& entry : entries_) {
        if (entry.start && entry.start->id() == exit.id && !entry.command->end()) {
            finish(std::string(entry.command->id()), end_of(exit));
            return;
        }
    }
}

void CommandTable::finish(const std::string& id, CommandEnd end) {
    Entry* entry = find_entry(id);
    entry->command->finish(std::move(end));
    ended_.push_back(id);
    if (entry->forget) {
        forget(id);
    }
    while (ended_.size() > kEndedCommandsMax) {
        forget(std::string(ended_.front()));
    }
    hooks_.note_end();
}

void CommandTable::forget(const std::string& id) {
    std::erase(ended_, id);
    std::erase_if(entries_, [&](const Entry& entry) {
        if (entry.command->id() != id) {
            return false;
        }
        entry.command->close();
        return true;
    });
}

void CommandTable::finish_all(const CommandEnd& end) {
    for (Entry& entry : entries_) {
        entry.command->finish(end);
        entry.command->close();
        entry.start.reset();  // a process that comes late is killed
        entry.born->set(session_ended());
    }
}

void CommandTable::on_sandbox_died() {
    finish_all({CommandEnd::Kind::kSignaled, SIGKILL, {}});
    hooks_.note_end();
}

void CommandTable::close() {
    if (std::exchange(closed_, true)) {
        return;
    }
    next_period_.cancel();
    finish_all({CommandEnd::Kind::kSessionEnded, 0, {}});
}

std::size_t CommandTable::running() const {
    return static_cast<std::size_t>(
        std::count_if(entries_.begin(), entries_.end(), [](const Entry& entry) {
            return !entry.command->end();
        }));
}

bool CommandTable::are_over() const {
    return std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) {
        return entry.command->is_over();
    });
}

void CommandTable::note_output(std::size_t bytes) {
    if (closed_) {
        return;
    }
    hooks_.note_use();
    const auto pause = ration_.take(bytes, std::chrono::steady_clock::now());
    if (!pause || next_period_.is_set()) {
        return;
    }
    for (const Entry& entry : entries_) {
        entry.command->pause_reading();
    }
    next_period_.set_after(*pause, [this] { resume_reading(); });
}

void CommandTable::resume_reading() {
    for (const Entry& entry : entries_) {
        entry.command->resume_reading();
    }
}

}  // namespace cellkeep::process
