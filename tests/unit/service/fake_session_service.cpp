// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/service/fake_session_service.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace cellkeep::session::test {

namespace asio = boost::asio;

FakeSession::FakeSession(SessionInfo info, int workspace_fd, asio::io_context& io)
    : info_(std::move(info)), workspace_fd_(workspace_fd), io_(io) {}

Result<std::shared_ptr<Execution>> FakeSession::begin(ExecutionRequest request) {
    requests.push_back(std::move(request));
    if (failure) {
        return *failure;
    }
    if (repeats) {
        return executions.back();
    }
    const ExecutionRequest& asked = requests.back();
    Execution::Order order;
    // The first session's are exe_1, exe_2; another one's have its number before theirs.
    const std::string session = info_.id == "ses_1" ? "" : info_.id.substr(4) + "_";
    order.id = "exe_" + session + std::to_string(executions.size() + 1);
    order.session_id = info_.id;
    order.reasoning = asked.reasoning;
    order.metadata = asked.metadata;
    order.tools = asked.tools;
    order.operator_access = operator_access;
    executions.push_back(std::make_shared<Execution>(io_, std::move(order)));
    const auto execution = executions.back();
    execution->mark_started();
    if (finishes) {
        execution->add_event("stdout", protocol::TextPieces(R"({"text":"out"})"));
        execution->finish(answer_of(*execution));
    }
    return execution;
}

ExecutionResult FakeSession::answer_of(const Execution& execution) const {
    ExecutionResult result;
    result.id = execution.id();
    result.session_id = info_.id;
    result.execution_count = 1;
    result.stdout_text = "out";
    result.exit_code = 0;
    result.status = outcome;
    result.metrics.wall = wall;
    if (outcome != ExecutionStatus::kOk) {
        result.error.emplace();
        result.error->kind = "runtime";
    }
    result.outputs.emplace_back(StreamOutput{"stdout", "out"});
    result.reasoning = execution.order().reasoning;
    result.metadata = execution.order().metadata;
    return result;
}

std::shared_ptr<Execution> FakeSession::find_execution(const std::string& id) const {
    for (const auto& execution : executions) {
        if (execution->id() == id) {
            return execution;
        }
    }
    return nullptr;
}

Status FakeSession::interrupt_execution(const std::string& id) {
    const auto execution = find_execution(id);
    if (!execution) {
        return Error(ErrorCode::kNotFound, "there is no " + id);
    }
    if (execution->phase() == ExecutionPhase::kFinished) {
        return Error(ErrorCode::kConflict, "it has finished");
    }
    return interrupt();
}

Status FakeSession::interrupt() {
    ++interrupts;
    if (failure) {
        return *failure;
    }
    return ok();
}

Status FakeSession::interrupt_language(const std::string& language) {
    named.push_back(language);
    return interrupt();
}

asio::awaitable<Status> FakeSession::restart_language(const std::string& language) {
    named.push_back(language);
    co_return co_await restart();
}

asio::awaitable<Status> FakeSession::restart() {
    ++restarts;
    if (failure) {
        co_return *failure;
    }
    co_return ok();
}

Status FakeSession::update(const SessionUpdate& wanted) {
    updates.push_back(wanted);
    if (failure) {
        return *failure;
    }
    if (wanted.limits) {
        info_.limits = *wanted.limits;
    }
    if (wanted.network) {
        info_.network = *wanted.network;
    }
    if (wanted.metadata) {
        info_.metadata = *wanted.metadata;
    }
    return ok();
}

asio::awaitable<Result<checkpoint::FileChanges>> FakeSession::compare_files(
    checkpoint::ComparisonOrder order) {
    compared.push_back(order);
    if (failure) {
        co_return *failure;
    }
    if (changes) {
        co_return *changes;
    }
    co_return co_await Session::compare_files(std::move(order));
}

asio::awaitable<Result<checkpoint::SessionFiles>> FakeSession::look_at_files() {
    if (files) {
        co_return *files;
    }
    co_return co_await Session::look_at_files();
}

asio::awaitable<Result<checkpoint::MergeAnswer>> FakeSession::merge_files(
    checkpoint::SessionFiles /*theirs*/, checkpoint::MergeOrder order) {
    merges.push_back(std::move(order));
    if (failure) {
        co_return *failure;
    }
    co_return merged;
}

Result<sandbox::Workspace::OpenedFile> FakeSession::open_input(const std::string& path) const {
    const auto found = mounted.find(path);
    if (found == mounted.end()) {
        return Session::open_input(path);
    }
    sandbox::Workspace::OpenedFile file;
    file.fd.reset(::open(found->second.c_str(), O_RDONLY | O_CLOEXEC));
    struct stat info {};
    if (!file.fd || ::fstat(file.fd.get(), &info) < 0) {
        return Error(ErrorCode::kInvalidArgument, "from: there is no such file");
    }
    file.state = sandbox::file_state(info);
    file.bytes = file.state.bytes;
    return file;
}

asio::awaitable<Result<UniqueFd>> FakeSession::connect_port(std::uint16_t port) {
    connected_ports.push_back(port);
    if (failure) {
        co_return *failure;
    }
    if (servers_inside.empty()) {
        co_return Error(ErrorCode::kNotFound, "connect: refused");
    }
    UniqueFd socket = std::move(servers_inside.front());
    servers_inside.pop_front();
    co_return socket;
}

const std::shared_ptr<WatchRation>& FakeSession::watch_ration() {
    if (watch_ration_ == nullptr) {
        watch_ration_ = WatchRation::create([](UniqueFd) {});
    }
    return watch_ration_;
}

Result<TreeWatch> FakeSession::watch_files(const std::string& path, TreeWatch::Depth depth) {
    return open_tree_watch(watch_ration(), {info_.id, info_.owner}, workspace(), path, depth);
}

Result<sandbox::Workspace> FakeSession::workspace() {
    if (failure) {
        return *failure;
    }
    return sandbox::Workspace(workspace_fd_, ::getuid(), ::getgid());
}

FakeSessionService::FakeSessionService() {
    for (const char* language : {"python", "sql"}) {
        KernelSpec spec;
        spec.language = language;
        spec.display_name = std::string(language) + " (Cellkeep)";
        specs_.push_back(std::move(spec));
    }
    std::string pattern =
        (std::filesystem::temp_directory_path() / "cellkeep-fake-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
    directory_fd_ = ::open(directory_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(directory_fd_ >= 0);
}

FakeSessionService::~FakeSessionService() {
    (void)::close(directory_fd_);
    std::error_code ignored;  // Ignored: the next run makes its own directory.
    (void)std::filesystem::remove_all(directory_, ignored);
}

std::shared_ptr<FakeSession> FakeSessionService::add(SessionOptions options) {
    SessionInfo info;
    info.id = "ses_" + std::to_string(next_id_++);
    info.kernel_id = options.kernel_id.empty() ? "kernel-" + info.id : options.kernel_id;
    info.language = options.language;
    info.state = KernelState::kIdle;
    info.limits = options.limits;
    info.metadata = options.metadata;
    info.owner = options.owner;
    auto session = std::make_shared<FakeSession>(std::move(info), directory_fd_, io);
    session->failure = session_failure;
    sessions.push_back(session);
    if (on_made) {
        on_made(session);
    }
    return session;
}

asio::awaitable<Result<std::shared_ptr<Session>>> FakeSessionService::create(
    SessionOptions options) {
    asked.push_back(options);
    if (gate != nullptr) {
        const auto waiting = gate;
        (void)co_await Completion<bool>::wait(waiting);
    }
    if (failure) {
        co_return *failure;
    }
    co_return std::shared_ptr<Session>(add(std::move(options)));
}

asio::awaitable<Result<std::shared_ptr<Session>>> FakeSessionService::branch(BranchOrder order) {
    branched.push_back(order);
    if (gate) {
        (void)co_await Completion<bool>::wait(gate);
    }
    if (failure) {
        co_return *failure;
    }
    SessionOptions options;
    options.owner = find(order.session)->info().owner;
    const auto made = add(std::move(options));
    made->edit().branch =
        BranchInfo{std::move(order.session), std::move(order.checkpoint), std::move(order.label)};
    co_return std::shared_ptr<Session>(made);
}

std::shared_ptr<Session> FakeSessionService::find(const std::string& id) const {
    for (const auto& session : sessions) {
        if (session->id() == id || session->info().kernel_id == id) {
            return session;
        }
    }
    return nullptr;
}

std::vector<std::shared_ptr<Session>> FakeSessionService::list() const {
    return {sessions.begin(), sessions.end()};
}

const KernelSpec* FakeSessionService::find_spec(const std::string& language) const {
    for (const KernelSpec& spec : specs_) {
        if (spec.language == language) {
            return &spec;
        }
    }
    return nullptr;
}

Status FakeSessionService::remove(const std::string& id) {
    ++removed;
    const auto found = std::find_if(sessions.begin(), sessions.end(), [&id](const auto& each) {
        return each->id() == id || each->info().kernel_id == id;
    });
    if (found == sessions.end()) {
        return Error(ErrorCode::kNotFound, "no session " + id);
    }
    const auto gone = *found;
    sessions.erase(found);
    for (const auto& execution : gone->executions) {
        if (ends_what_runs && execution->phase() != ExecutionPhase::kFinished) {
            ExecutionResult result = gone->answer_of(*execution);
            result.status = ExecutionStatus::kInterrupted;
            execution->finish(std::move(result));
        }
    }
    return ok();
}

}  // namespace cellkeep::session::test
