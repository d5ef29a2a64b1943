// SPDX-License-Identifier: Apache-2.0
//
// The cost of the wall at session start: the same program started bare and in a sandbox, in turns,
// so that a busy moment of the machine falls on both. Prints a table; medians and 90th percentiles.
#include "kernel-manager/languages/kernel_catalog.hpp"
#include "protocol/frame.hpp"
#include "protocol/message.hpp"
#include "protocol/support/syscall.hpp"
#include "sandbox/policy/host_mode.hpp"
#include "sandbox/sandbox.hpp"

#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace cellkeep::benchmark {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPatienceMs = 60'000;
constexpr uid_t kSessionUid = 65'533;

template <typename T>
T take(Result<T> result) {
    if (result.has_error()) {
        (void)std::fprintf(
            stderr, "%s (%s)\n", result.error().message().c_str(), result.error().hint().c_str());
        std::exit(1);  // NOLINT(concurrency-mt-unsafe): there is one thread
    }
    return std::move(result).value();
}

/// The program and the policy of a session.
struct Subject {
    session::KernelSpec spec;
    sandbox::Policy policy;
    std::vector<std::string> bare_argv;
    std::vector<std::string> bare_env;
};

/// Replaces the paths in the sandbox by those outside, for the bare program.
std::string outside(const session::KernelSpec& spec, std::string text) {
    for (const sandbox::ReadOnlyPath& path : spec.read_only) {
        if (path.target.starts_with("/opt/cellkeep")) {
            for (auto at = text.find(path.target); at != std::string::npos;
                 at = text.find(path.target, at + path.source.size())) {
                text.replace(at, path.target.size(), path.source);
            }
        }
    }
    return text;
}

Subject make_subject(const image::Prepared* images) {
    const auto installation = take(session::find_installation());
    const auto catalog = take(session::KernelCatalog::create(installation, images));
    Subject subject{*catalog.find("python"), {}, {}, {}};
    subject.policy.read_only = subject.spec.read_only;
    subject.policy.images = subject.spec.images;
    subject.policy.host_uid = kSessionUid;
    subject.policy.host_gid = kSessionUid;
    subject.policy.allow_degraded = {"private_image"};
    if (sandbox::run_mode() != sandbox::RunMode::kRoot) {
        subject.policy.allow_degraded.insert(
            {"memory_limit", "process_limit", "cpu_limit", "cpu_accounting", "freeze"});
    }
    for (const std::string& word : subject.spec.argv) {
        subject.bare_argv.push_back(outside(subject.spec, word));
    }
    for (const std::string& entry : subject.spec.env) {
        subject.bare_env.push_back(
            entry == "HOME=/workspace" ? "HOME=/tmp" : outside(subject.spec, entry));
    }
    return subject;
}

void send(int link, std::string_view type, const nlohmann::json& content) {
    const auto header = protocol::make_header(type, "benchmark", "benchmark");
    const std::string header_text = protocol::dump_json(protocol::to_json(header));
    const std::string content_text = protocol::dump_json(content);
    const auto message = take(protocol::Message::create(
        {.channel = protocol::Channel::kShell,
         .header = header_text,
         .parent_header = "{}",
         .metadata = "{}",
         .content = content_text,
         .buffers = {}}));
    take(write_all(link, protocol::encode_link_prefix(message.frame().size())));
    take(write_all(link, message.frame()));
}

/// Sends `1+1` and reads until its reply is there.
void first_result(int link) {
    send(
        link,
        "execute_request",
        {{"code", "1+1"},
         {"silent", false},
         {"store_history", true},
         {"user_expressions", nlohmann::json::object()},
         {"allow_stdin", false},
         {"stop_on_error", true}});
    std::string said;
    std::array<char, 65'536> piece{};
    while (said.find("execute_reply") == std::string::npos) {
        pollfd watched{link, POLLIN, 0};
        const ssize_t got =
            ::poll(&watched, 1, kPatienceMs) == 1 ? ::read(link, piece.data(), piece.size()) : -1;
        if (got <= 0) {
            (void)std::fprintf(stderr, "the kernel did not answer\n");
            std::exit(1);  // NOLINT(concurrency-mt-unsafe): there is one thread
        }
        said.append(piece.data(), static_cast<std::size_t>(got));
    }
}

double milliseconds_since(Clock::time_point began) {
    return std::chrono::duration<double, std::milli>(Clock::now() - began).count();
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (std::string& text : texts) {
        list.push_back(text.data());
    }
    list.push_back(nullptr);
    return list;
}

double time_bare(std::vector<std::string> argv, std::vector<std::string> env, bool kernel) {
    const auto words = pointers(argv);
    const auto variables = pointers(env);
    auto link = take(make_socket_pair(SOCK_STREAM));
    const auto began = Clock::now();
    const pid_t pid = ::fork();
    if (pid == 0) {
        const int null = ::open("/dev/null", O_RDWR);
        const int end = ::fcntl(link.second.get(), F_DUPFD, 10);
        for (int fd = 0; fd < 3; ++fd) {
            (void)::dup2(null, fd);
        }
        (void)::dup2(end, 3);
        (void)::syscall(SYS_close_range, 4U, ~0U, 0U);
        (void)::execve(words[0], words.data(), variables.data());
        ::_exit(127);
    }
    link.second.reset();
    if (kernel) {
        first_result(link.first.get());
    }
    double took = milliseconds_since(began);
    if (kernel) {
        (void)::kill(pid, SIGKILL);
    }
    (void)::waitpid(pid, nullptr, 0);
    if (!kernel) {
        took = milliseconds_since(began);
    }
    return took;
}

double time_sandboxed(const Subject& subject, std::vector<std::string> argv, bool kernel) {
    auto link = take(make_socket_pair(SOCK_STREAM));
    auto null = take(open_file("/dev/null", O_WRONLY));
    auto other = take(open_file("/dev/null", O_WRONLY));
    const auto began = Clock::now();
    sandbox::Sandbox box = take(sandbox::Sandbox::create(subject.policy));
    sandbox::WorkerSpec worker;
    worker.argv = std::move(argv);
    worker.env = subject.spec.env;
    worker.stdout_fd = std::move(null);
    worker.stderr_fd = std::move(other);
    worker.link_fd = std::move(link.second);
    const auto started = take(box.start(std::move(worker)));
    if (kernel) {
        first_result(link.first.get());
    } else {
        pollfd watched{box.event_fd(), POLLIN, 0};
        (void)::poll(&watched, 1, kPatienceMs);
    }
    const double took = milliseconds_since(began);
    take(box.destroy());
    return took;
}

double quantile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[std::min(
        values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

struct Row {
    const char* name;
    std::function<double()> once;
    std::vector<double> milliseconds;
};

int measure(int rounds) {
    const auto directory = take(image::default_store_directory());
    auto store = take(image::Store::open(directory));
    const auto installation = take(session::find_installation());
    const auto images = take(image::prepare(
        store, session::image_sources(installation), std::nullopt, [](const std::string& line) {
            (void)std::fprintf(stderr, "%s\n", line.c_str());
        }));
    const Subject host = make_subject(nullptr);
    const Subject with_image = make_subject(&images);
    const std::vector<std::string> nothing{"/usr/bin/true"};
    std::vector<Row> rows{
        {"/usr/bin/true, bare", [&] { return time_bare(nothing, {}, false); }, {}},
        {"/usr/bin/true, sandboxed",
         [&] { return time_sandboxed(with_image, nothing, false); },
         {}},
        {"kernel to first result, bare",
         [&] { return time_bare(host.bare_argv, host.bare_env, true); },
         {}},
        {"kernel to first result, sandboxed, the host's own files",
         [&] { return time_sandboxed(host, host.spec.argv, true); },
         {}},
        {"kernel to first result, sandboxed, private image",
         [&] { return time_sandboxed(with_image, with_image.spec.argv, true); },
         {}}};
    for (int round = -1; round < rounds; ++round) {  // the first warms the page cache
        for (Row& row : rows) {
            const double took = row.once();
            if (round >= 0) {
                row.milliseconds.push_back(took);
            }
        }
    }
    double load = 0;
    (void)::getloadavg(&load, 1);
    std::printf(
        "| start, ms (%d rounds, load %.1f) | p50 | p90 |\n|---|---:|---:|\n", rounds, load);
    for (const Row& row : rows) {
        std::printf(
            "| %s | %.1f | %.1f |\n",
            row.name,
            quantile(row.milliseconds, 0.5),
            quantile(row.milliseconds, 0.9));
    }
    return 0;
}

}  // namespace

}  // namespace cellkeep::benchmark

int main(int argc, char** argv) {
    (void)::signal(SIGPIPE, SIG_IGN);
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 30;  // NOLINT(cert-err34-c): 0 is refused
    if (rounds < 1) {
        (void)std::fprintf(stderr, "usage: wall_cost [ROUNDS]\n");
        return 2;
    }
    return cellkeep::benchmark::measure(rounds);
}
