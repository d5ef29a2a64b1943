// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/kernel/kernel_host.hpp"

#include "kernel-manager/cli/run/console.hpp"
#include "kernel-manager/kernel/kernel_state.hpp"
#include "protocol/limits.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>

#include <csignal>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

constexpr const char* kNotice =
    "Cellkeep is making the private copy of the system that this kernel runs from. That takes up "
    "to some minutes, once. The cell runs when it is there.\n";

/// What a kernel_info_reply says while there is no kernel to ask. Clients keep language_info in the
/// notebook; the kernel's own answer replaces it.
nlohmann::json preparing_info(const session::KernelSpec& spec) {
    nlohmann::json language = spec.language_info;
    if (language.empty() && spec.language == "python") {
        language = {
            {"name", "python"},
            {"version", "3"},
            {"mimetype", "text/x-python"},
            {"codemirror_mode", {{"name", "ipython"}, {"version", 3}}},
            {"pygments_lexer", "ipython3"},
            {"nbconvert_exporter", "python"},
            {"file_extension", ".py"}};
    }
    const nlohmann::json unknown = {
        {"name", spec.language},
        {"version", ""},
        {"mimetype", "text/plain"},
        {"file_extension", ""}};
    for (const auto& [name, value] : unknown.items()) {
        if (!language.contains(name)) {
            language[name] = value;
        }
    }
    return {
        {"status", "ok"},
        {"protocol_version", protocol::kProtocolVersion},
        {"implementation", "cellkeep"},
        {"implementation_version", ""},
        {"language_info", std::move(language)},
        {"banner", kNotice},
        {"debugger", false},
        {"help_links", nlohmann::json::array()}};
}

}  // namespace

KernelHost::KernelHost(asio::io_context& io, ServiceStart start)
    : io_(io),
      signals_(io, SIGINT, SIGTERM),
      load_(std::move(start.load)),
      build_arguments_(std::move(start.build_arguments)),
      of_host_(std::move(start.of_host)),
      service_(io, std::move(start.config)) {
    signals_.add(SIGHUP);
    signals_.add(SIGQUIT);
    service_.add_listener(this);
    await_signal();
}

KernelHost::~KernelHost() {
    stop();
}

Status KernelHost::end_with(pid_t parent) {
    BOOST_OUTCOME_TRY(parent_, ParentWatch::create(io_, parent, [this] { stop(); }));
    return ok();
}

Status KernelHost::run(session::SessionOptions options, jupyter::BoundSockets sockets) {
    sockets_.emplace(std::move(sockets));
    asio::co_spawn(io_, open(std::move(options)), asio::detached);
    while (!ended_ && io_.run_one() > 0) {
    }
    boost::system::error_code ignored;  // Ignored: the wait ends either way.
    (void)signals_.cancel(ignored);
    parent_.reset();
    // What was posted before the end; there is nothing to wait for.
    io_.restart();
    (void)io_.poll();
    front_.reset();
    preface_.reset();
    sockets_.reset();
    if (failure_.has_value()) {
        return *failure_;
    }
    return ok();
}

Result<std::unique_ptr<BuildProcess>> KernelHost::begin_build(BuildProcess::Hooks hooks) {
    return BuildProcess::start(io_, own_program(), build_arguments_, std::move(hooks));
}

Status KernelHost::begin_preparing(const std::string& language) {
    const session::KernelSpec* spec = service_.find_spec(language);
    if (spec == nullptr) {
        return ok();  // creating the session says so
    }
    jupyter::PreparingConfig config;
    config.kernel_info = preparing_info(*spec);
    config.notice = kNotice;
    config.on_shutdown_answered = [this] {
        stop();
        ended_ = true;
    };
    BOOST_OUTCOME_TRY(
        preface_, jupyter::PreparingFront::create(io_, std::move(*sockets_), std::move(config)));
    sockets_.reset();
    prepared_ = std::make_shared<Completion<Status>>(io_);
    preparation_ = EnvironmentPreparation::create(
        io_,
        {.start = [this](BuildProcess::Hooks hooks) { return begin_build(std::move(hooks)); },
         .load = load_,
         .on_line = [](const std::string& line) { print_error(line + "\n"); },
         .on_end =
             [this](Result<session::KernelCatalog> made) {
                 if (made.has_error() && !of_host_) {
                     prepared_->set(std::move(made).error());
                     return;
                 }
                 service_.provide(made.has_value() ? std::move(made).value() : *of_host_);
                 prepared_->set(ok());
             }});
    preparation_->begin();
    return ok();
}

asio::awaitable<Status> KernelHost::prepare(const std::string& language) {
    if (!load_) {
        co_return ok();
    }
    if (!service_.preparing()) {
        // For the next start; this one runs from what the operator chose.
        auto begun = begin_build(
            {.on_line = [](const std::string& /*line*/) {},
             .on_end = [](const Status& /*outcome*/) {}});
        if (begun.has_error()) {
            print_error(begun.error());
        } else {
            build_ = std::move(begun).value();
        }
        co_return ok();
    }
    BOOST_OUTCOME_CO_TRY(begin_preparing(language));
    if (!prepared_) {
        co_return ok();
    }
    const auto prepared = prepared_;
    Status outcome = co_await Completion<Status>::wait(prepared);
    BOOST_OUTCOME_CO_TRY(std::move(outcome));
    co_return ok();
}

asio::awaitable<void> KernelHost::open(session::SessionOptions options) {
    Status prepared = co_await prepare(options.language);
    if (stopping_) {
        co_return;
    }
    preparation_.reset();
    Result<std::shared_ptr<session::Session>> created(
        Error(ErrorCode::kUnavailable, "the kernel has not begun"));
    if (prepared.has_error()) {
        created = std::move(prepared).error();
    } else {
        created = co_await service_.create(std::move(options));
    }
    Status served = ok();
    if (created.has_error()) {
        served = std::move(created).error();
    } else {
        session_ = std::move(created).value();
        session_->subscribe(this);
        served = serve();
    }
    if (served.has_error()) {
        if (!stopping_) {
            failure_ = served.error();
        }
        stop();
        ended_ = true;
    }
}

Status KernelHost::serve() {
    if (preface_) {
        jupyter::PreparingFront::Handover came = std::exchange(preface_, nullptr)->hand_over();
        sockets_.emplace(std::move(came.sockets));
        held_ = std::move(came.held);
    }
    jupyter::ZmqSessionConfig config;
    config.stall_max = limits::kZmqStallMax;
    config.log = [](const std::string& line) { print_error("cellkeep: " + line + "\n"); };
    // Restart or not: the Jupyter program waits for this process to end, and starts another one if
    // it wants to (jupyter_client, KernelManager.restart_kernel).
    config.on_shutdown_answered = [this] { stop(); };
    BOOST_OUTCOME_TRY(
        front_,
        jupyter::ZmqSession::create(io_, std::move(*sockets_), session_, std::move(config)));
    sockets_.reset();
    for (jupyter::HeldRequest& request : std::exchange(held_, {})) {
        front_->submit(std::move(request.identities), std::move(request.message));
    }
    return ok();
}

Status KernelHost::on_session_created(const std::shared_ptr<session::Session>& /*session*/) {
    return ok();
}

void KernelHost::on_session_closed(const std::string& /*session_id*/) {
    if (front_ != nullptr) {
        front_->close();
    }
    ended_ = true;
}

void KernelHost::on_output(const session::OutputEntry& entry) {
    if (entry.message.header().msg_type == "status" &&
        session_->state() == session::KernelState::kDead) {
        // Later: the session may be about to start a fresh interpreter.
        asio::post(io_, [this] { look_after_death(); });
    }
}

/// A kernel that stays dead ends its process, so that the Jupyter program sees it and can start
/// another.
void KernelHost::look_after_death() {
    if (stopping_ || session_->state() != session::KernelState::kDead) {
        return;
    }
    const auto death = session_->info().death;
    failure_ = Error(
        ErrorCode::kUnavailable,
        death.has_value() ? session::describe(*death) : "The interpreter is gone.");
    stop();
}

void KernelHost::await_signal() {
    signals_.async_wait([this](const boost::system::error_code& error, int signal) {
        if (error) {
            return;
        }
        if (signal != SIGINT) {
            stop();
            return;
        }
        if (preface_ != nullptr) {
            preface_->interrupt();
        }
        if (session_ != nullptr) {
            // Ignored: a dead kernel runs nothing that could be interrupted.
            (void)session_->interrupt();
        }
        await_signal();
    });
}

void KernelHost::stop() {
    if (std::exchange(stopping_, true)) {
        return;
    }
    // First, so that no "dead" goes out: JupyterLab would give the kernel up in the middle of a
    // restart (@jupyterlab/services, KernelConnection._updateStatus).
    if (front_ != nullptr) {
        front_->close();
    }
    if (preparation_ != nullptr) {
        preparation_->stop();
        ended_ = ended_ || session_ == nullptr;
    }
    service_.shutdown();
}

}  // namespace cellkeep::cli
