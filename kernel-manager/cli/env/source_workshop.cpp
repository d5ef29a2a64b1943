// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/env/source_workshop.hpp"

#include "kernel-manager/cli/run/run_to_end.hpp"
#include "kernel-manager/cli/serve/service_setup.hpp"
#include "kernel-manager/egress/egress_service.hpp"
#include "kernel-manager/image/image_scratch.hpp"
#include "kernel-manager/service/service.hpp"
#include "kernel-manager/session/packages/package_index.hpp"
#include "protocol/support/syscall.hpp"

#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

namespace cellkeep::cli {

namespace asio = boost::asio;

namespace {

constexpr const char* kWheels = "wheels";
constexpr const char* kOrderFile = "build/order.json";
constexpr const char* kRequirementsFile = "build/requirements.txt";
constexpr std::chrono::milliseconds kWorkshopLastWork{2000};

/// pip, led by nothing but its command. What counts is the wheel that is there afterwards.
constexpr const char* kBuildProgram = R"py(
import json, os, subprocess, sys
order = json.load(open("/workspace/build/order.json", encoding="utf-8"))
kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_") or name == "PIP_CERT"}
for name in ("no_proxy", "NO_PROXY"):  # the index may be at a loopback address of the host
    kept.pop(name, None)
for folder in ("wheels", "tmp"):
    os.makedirs("/workspace/" + folder, exist_ok=True)
done = subprocess.run(
    [sys.executable, *order["command"]],
    env={**kept, "PIP_CONFIG_FILE": os.devnull, "TMPDIR": "/workspace/tmp"},
    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
)
print(done.stdout[-order["text"]:].decode("utf-8", "replace"))
)py";

/// Every address may be one of the index's: it is named, and nothing else can be asked for.
Status permit_all(egress::EgressConfig& config) {
    for (const char* range : {"0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"}) {
        BOOST_OUTCOME_TRY(auto parsed, egress::parse_address_range(range));
        config.permitted.push_back(std::move(parsed));
    }
    return ok();
}

std::string join_texts(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) {
        text += line + "\n";
    }
    return text;
}

session::SessionOptions options_for(
    const environments::SourceOrder& order, const egress::NetworkPolicy& network) {
    session::SessionOptions options;
    options.limits.memory_mb = kSourceMemoryMb;
    options.limits.disk_mb = kSourceDiskMb;
    options.limits.processes = kSourceProcesses;
    options.limits.cpu_cores = kSourceCpuCores;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        order.deadline - std::chrono::steady_clock::now());
    options.limits.wall = std::max(left, std::chrono::milliseconds(1));
    options.limits.cpu = options.limits.wall * 2;
    options.network = network;
    options.owner = "env";
    return options;
}

/// How an execution ended that a bound has ended; else nothing.
Status check_end(const session::ExecutionResult& result) {
    switch (result.status) {
        case session::ExecutionStatus::kTimeout:
            return Error(ErrorCode::kTimeout, "it took longer than it may");
        case session::ExecutionStatus::kOom:
            return Error(
                ErrorCode::kLimitExceeded,
                "it takes more than " + std::to_string(kSourceMemoryMb) + " MiB of memory");
        case session::ExecutionStatus::kDiskFull:
            return Error(
                ErrorCode::kLimitExceeded,
                "it takes more than " + std::to_string(kSourceDiskMb) + " MiB of disk space");
        default:
            return ok();
    }
}

Status copy_file(int from, const std::string& path, std::uint64_t bytes_max) {
    BOOST_OUTCOME_TRY(
        const UniqueFd to,
        open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, S_IRUSR | S_IWUSR));
    return with_context(
        read_in_pieces(
            from, bytes_max, [&to](std::string_view piece) { return write_all(to.get(), piece); }),
        "its wheel");
}

}  // namespace

struct SourceWorkshop::Parts {
    explicit Parts(std::string directory) : scratch(std::move(directory)) {}

    asio::io_context io{1};
    image::Scratch scratch;  // of the certificates that builds see
    session::PackageIndex index;
    egress::NetworkPolicy network;
    std::shared_ptr<egress::EgressService> egress;
    std::optional<session::Service> service;

    asio::awaitable<Result<std::string>> build(environments::SourceOrder order);
    asio::awaitable<Result<std::string>> build_in(
        std::shared_ptr<session::Session> session, const environments::SourceOrder& order) const;
};

asio::awaitable<Result<std::string>> SourceWorkshop::Parts::build(environments::SourceOrder order) {
    auto options = options_for(order, network);
    auto created = co_await service->create(std::move(options));
    if (created.has_error()) {
        co_return created.error();
    }
    const std::shared_ptr<session::Session> session = std::move(created).value();
    auto built = co_await build_in(session, order);
    (void)service->remove(session->id());  // Ignored: already gone is what we want.
    co_return built;
}

asio::awaitable<Result<std::string>> SourceWorkshop::Parts::build_in(
    std::shared_ptr<session::Session> session, const environments::SourceOrder& order) const {
    session::ExecutionRequest request;
    request.code = kBuildProgram;
    const std::string trusted = index.plain ? to_string(index.host) : std::string();
    request.files.push_back({kOrderFile, source_command(order, index.url, trusted), {}, {}});
    request.files.push_back({kRequirementsFile, join_texts(order.requirements), {}, {}});
    const auto result = co_await session->execute(std::move(request));
    if (result.has_error()) {
        co_return result.error();
    }
    if (const Status ended = check_end(result.value()); ended.has_error()) {
        co_return ended.error();
    }
    const auto workspace = session->workspace();
    if (workspace.has_error()) {
        co_return workspace.error();
    }
    auto wheel = take_wheel(workspace.value(), order.directory, order.bytes_max);
    if (wheel.has_error() && wheel.error().code() == ErrorCode::kUnavailable) {
        const std::string& said = result.value().stdout_text;
        co_return Error(
            ErrorCode::kUnavailable, wheel.error().message() + ":\n" + said, wheel.error().hint());
    }
    co_return wheel;
}

SourceWorkshop::SourceWorkshop(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

SourceWorkshop::~SourceWorkshop() {
    if (parts_->service) {
        parts_->service->shutdown();
    }
    parts_->io.restart();
    (void)parts_->io.run_for(kWorkshopLastWork);
    if (parts_->egress) {
        parts_->egress->stop();
    }
}

Result<std::unique_ptr<SourceWorkshop>> SourceWorkshop::open(
    const std::string& index, const std::vector<std::string>& hosts) {
    if (index.empty()) {
        return Error(
            ErrorCode::kInvalidArgument,
            "--build-sdists needs --index: what is built reaches the index that is named, and "
            "nothing else");
    }
    std::error_code error;
    std::string directory =
        std::filesystem::temp_directory_path(error).string() + "/cellkeep-build-XXXXXX";
    if (error || ::mkdtemp(directory.data()) == nullptr) {
        return Error::from_errno(error ? error.value() : errno, "mkdtemp(" + directory + ")");
    }
    auto parts = std::make_unique<Parts>(directory);
    BOOST_OUTCOME_TRY(parts->index, with_context(session::parse_package_index(index), "--index"));
    egress::EgressConfig config;
    config.ceiling.push_back(parts->index.host);
    for (const std::string& host : hosts) {
        BOOST_OUTCOME_TRY(
            auto allowed, with_context(egress::parse_allowed_host(host), "--build-hosts"));
        config.ceiling.push_back(std::move(allowed));
    }
    BOOST_OUTCOME_TRY(permit_all(config));
    config.directory = directory + "/egress";
    parts->network = {egress::NetworkMode::kAllowlist, config.ceiling, {}};
    BOOST_OUTCOME_TRY(parts->egress, egress::EgressService::create(parts->io, std::move(config)));
    BOOST_OUTCOME_TRY(auto service, make_service_config(1, {}));
    service.egress_service = parts->egress;
    parts->service.emplace(parts->io, std::move(service));
    return std::unique_ptr<SourceWorkshop>(new SourceWorkshop(std::move(parts)));
}

Result<std::string> SourceWorkshop::build(const environments::SourceOrder& order) {
    parts_->io.restart();
    return run_to_end(parts_->io, parts_->build(order));
}

std::string source_command(
    const environments::SourceOrder& order, const std::string& index, const std::string& trusted) {
    std::vector<std::string> command{"-I", "-m", "pip", "wheel", "--disable-pip-version-check"};
    command.insert(
        command.end(),
        {"--no-input", "--no-cache-dir", "--no-color", "--progress-bar", "off", "--no-deps"});
    // Without a pyproject.toml pip would run setup.py with what the session happens to have.
    command.emplace_back("--use-pep517");
    // What its build needs comes as wheels; only its own source is built.
    command.insert(command.end(), {"--only-binary", ":all:", "--no-binary", order.name});
    command.insert(command.end(), {"--index-url", index});
    if (!trusted.empty()) {
        command.insert(command.end(), {"--trusted-host", trusted});
    }
    command.insert(command.end(), {"--wheel-dir", std::string("/workspace/") + kWheels});
    command.insert(
        command.end(), {"--requirement", std::string("/workspace/") + kRequirementsFile});
    return nlohmann::json{{"command", command}, {"text", kSourceTextBytesMax}}.dump();
}

Result<std::string> take_wheel(
    const sandbox::Workspace& workspace, const std::string& directory, std::uint64_t bytes_max) {
    const auto entries = workspace.list(kWheels);
    if (entries.has_error() || entries.value().size() != 1) {
        return Error(
            ErrorCode::kUnavailable,
            "it gives no wheel, or more than one",
            "A build sees the host's compiler and Python's headers if they are installed (gcc, "
            "libpython3-dev), and reaches the index alone.");
    }
    const std::string& path = entries.value().front().path;
    const std::string name = std::filesystem::path(path).filename().string();
    BOOST_OUTCOME_TRY(const auto file, workspace.open_for_reading(path));
    BOOST_OUTCOME_TRY(copy_file(file.fd.get(), directory + "/" + name, bytes_max));
    return name;
}

}  // namespace cellkeep::cli
