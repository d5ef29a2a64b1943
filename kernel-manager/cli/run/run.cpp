// SPDX-License-Identifier: Apache-2.0
//
// `cellkeep run`: a notebook or a program, executed in a sandboxed session.
#include "kernel-manager/cli/commands.hpp"
#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/cli/run/run_to_end.hpp"
#include "kernel-manager/cli/run/runner.hpp"
#include "protocol/support/syscall.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <csignal>
#include <filesystem>
#include <functional>
#include <map>
#include <system_error>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

constexpr std::size_t kFileBytesMax = 256ULL << 20U;
constexpr std::chrono::milliseconds kRunLastWork{2000};
constexpr std::chrono::milliseconds kInterruptGrace{3000};

enum class FileKind { kNotebook, kProgram };

/// Which language a program is written in, by the end of its name. "": unknown.
std::string language_by_name(const std::string& file) {
    static const std::map<std::string, std::string> languages{
        {".py", "python"},
        {".sh", "bash"},
        {".bash", "bash"},
        {".js", "javascript"},
        {".mjs", "javascript"},
        {".ts", "typescript"},
        {".sql", "sql"},
        {".cpp", "cpp"},
        {".cc", "cpp"},
        {".r", "r"},
        {".R", "r"}};
    const auto found = languages.find(std::filesystem::path(file).extension().string());
    return found == languages.end() ? std::string() : found->second;
}

FileKind kind_of(const std::string& file) {
    return std::filesystem::path(file).extension() == ".ipynb" ? FileKind::kNotebook
                                                               : FileKind::kProgram;
}

Result<std::string> language_of(
    const RunCommand& command, const std::optional<Notebook>& notebook) {
    if (command.language) {
        return *command.language;
    }
    if (notebook) {
        return notebook->language();
    }
    const std::string language = language_by_name(command.file);
    if (language.empty()) {
        return Error(
            ErrorCode::kInvalidArgument,
            command.file + ": its name does not say what it is written in",
            "Say it with --language.");
    }
    return language;
}

std::string default_output(const std::string& file) {
    std::filesystem::path path(file);
    return (path.parent_path() / (path.stem().string() + ".executed.ipynb")).string();
}

Status write_figures(const RunReport& report, const std::string& directory) {
    std::error_code error;
    (void)std::filesystem::create_directories(directory, error);
    if (error) {
        return Error::from_errno(error.value(), "mkdir(" + directory + ")");
    }
    for (const Figure& figure : report.figures) {
        const std::string name = directory + "/cell-" + std::to_string(figure.cell) + "-" +
                                 std::to_string(figure.number) + ".png";
        BOOST_OUTCOME_TRY(write_file_atomically(name, figure.png, 0644));
        print("figure " + name + "\n");
    }
    return ok();
}

/// One run from open to close, and the signals that may cut it short.
class Run {
 public:
    Run(asio::io_context& io, const RunCommand& command, RunTarget& target)
        : command_(command), target_(target), signals_(io, SIGINT, SIGTERM), grace_(io) {
        signals_.async_wait([this, &io](const boost::system::error_code& error, int /*signal*/) {
            if (error) {
                return;
            }
            interrupted_ = true;
            // From here on a second signal ends the process at once.
            boost::system::error_code ignored;  // Ignored: nothing to do about it now.
            (void)signals_.clear(ignored);
            if (state_ == State::kRunning) {
                asio::co_spawn(
                    io, [this] { return cut_short(); }, asio::detached);
            }
        });
    }

    /// The notebook's cells, or, without a notebook, the program.
    asio::awaitable<Result<RunOutcome>> execute(
        std::optional<Notebook> notebook, std::string program) {
        const auto session = co_await target_.open(command_.timeout);
        if (session.has_error()) {
            co_return session.error();
        }
        state_ = State::kRunning;
        const std::function<bool()> interrupted = [this] { return interrupted_; };
        Result<RunReport> report = Error(ErrorCode::kCancelled, "interrupted");
        if (interrupted_) {
            report = RunReport{RunOutcome::kInterrupted, {}};
        } else if (notebook) {
            report = co_await run_cells(target_, *notebook, interrupted);
        } else {
            report = co_await run_program(target_, std::move(program));
        }
        state_ = State::kEnding;
        (void)grace_.cancel();
        Status saved = ok();
        if (notebook) {
            saved = save(*notebook, session.value());
        }
        if (report.has_value() && command_.figures_dir && saved.has_value()) {
            saved = write_figures(report.value(), *command_.figures_dir);
        }
        if (command_.keep_session) {
            print("session " + session.value() + "\n");
        } else {
            co_await target_.close();
        }
        boost::system::error_code ignored;  // Ignored: the wait ends either way.
        (void)signals_.cancel(ignored);
        if (report.has_error() && !interrupted_) {
            co_return report.error();
        }
        if (saved.has_error()) {
            co_return saved.error();
        }
        co_return interrupted_ ? RunOutcome::kInterrupted : report.value().outcome;
    }

 private:
    enum class State { kOpening, kRunning, kEnding };

    /// An interrupt that came before the code began is lost on an idle kernel, and code may catch
    /// it: what still runs after a grace ends with its session.
    asio::awaitable<void> cut_short() {
        co_await target_.interrupt();
        if (state_ != State::kRunning) {
            co_return;
        }
        grace_.expires_after(kInterruptGrace);
        (void)co_await grace_.async_wait(asio::as_tuple(asio::use_awaitable));
        if (state_ == State::kRunning) {
            co_await target_.close();
        }
    }

    Status save(Notebook& notebook, const std::string& session_id) const {
        if (command_.keep_session) {
            notebook.set_session_id(session_id);
        }
        const std::string output = command_.output.value_or(default_output(command_.file));
        std::error_code error;
        const auto parent = std::filesystem::path(output).parent_path();
        if (!parent.empty()) {
            (void)std::filesystem::create_directories(parent, error);
        }
        BOOST_OUTCOME_TRY(write_file_atomically(output, notebook.to_text(), 0644));
        print("wrote " + output + "\n");
        return ok();
    }

    const RunCommand& command_;
    RunTarget& target_;
    asio::signal_set signals_;
    asio::steady_timer grace_;
    State state_ = State::kOpening;
    bool interrupted_ = false;
};

Result<std::unique_ptr<RunTarget>> make_target(
    asio::io_context& io, const RunCommand& command, const std::string& language) {
    if (!command.server_state_dir) {
        return make_local_target(
            io, {language, command.environment, command.allow_degraded, command.kernels});
    }
    BOOST_OUTCOME_TRY(const ServerRecord server, load_server_record(*command.server_state_dir));
    return make_server_target(server, language, command.environment);
}

Result<RunOutcome> run_file(const RunCommand& command) {
    const FileKind kind = kind_of(command.file);
    BOOST_OUTCOME_TRY(std::string text, read_file(command.file, kFileBytesMax));
    std::optional<Notebook> notebook;
    if (kind == FileKind::kNotebook) {
        BOOST_OUTCOME_TRY(notebook, Notebook::parse(text, command.file));
    }
    BOOST_OUTCOME_TRY(const std::string language, language_of(command, notebook));
    asio::io_context io(1);
    BOOST_OUTCOME_TRY(auto target, make_target(io, command, language));
    Run run(io, command, *target);
    auto outcome = run_to_end(io, run.execute(std::move(notebook), std::move(text)));
    target.reset();
    (void)io.run_for(kRunLastWork);
    return outcome;
}

}  // namespace

int run(const RunCommand& command) {
    if (command.keep_session && !command.server_state_dir) {
        print_error(Error(
            ErrorCode::kInvalidArgument,
            "--keep-session needs --server: a session of this process ends with it"));
        return kExitUsage;
    }
    const auto outcome = run_file(command);
    if (outcome.has_error()) {
        print_error(outcome.error());
        return kExitFailed;
    }
    switch (outcome.value()) {
        case RunOutcome::kDone:
            return kExitDone;
        case RunOutcome::kFailed:
            return kExitFailed;
        case RunOutcome::kInterrupted:
            return kExitInterrupted;
    }
    return kExitFailed;
}

}  // namespace cellkeep::cli
