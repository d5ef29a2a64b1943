// SPDX-License-Identifier: Apache-2.0
//
// An operator's files in /workspace: a guest can read them and not change them.
#include "protocol/support/syscall.hpp"
#include "sandbox/workspace/workspace.hpp"
#include "tests/sandbox/fixture.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace cellkeep::test {

using sandbox::InputMount;
using sandbox::kInputsMax;
using sandbox::Policy;
using sandbox::Sandbox;
using sandbox::Workspace;

namespace {

void make_file(const std::string& path, std::string_view text, mode_t mode = 0644) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, mode));
    REQUIRE(fd);
    REQUIRE(::fchmod(fd.get(), mode) == 0);
    require_ok(write_all(fd.get(), text));
}

Policy policy_with(std::vector<InputMount> inputs) {
    Policy policy = test_policy();
    policy.inputs = std::move(inputs);
    return policy;
}

constexpr const char* kTryToChange = R"(
import errno, mmap, os
path = "data/in/table.csv"
def attempt(name, what):
    try: what(); print(name, "ok")
    except OSError as error: print(name, errno.errorcode[error.errno])
attempt("write", lambda: open(path, "r+"))
attempt("truncate", lambda: os.truncate(path, 0))
attempt("chmod", lambda: os.chmod(path, 0o777))
attempt("utime", lambda: os.utime(path))
attempt("unlink", lambda: os.unlink(path))
attempt("rename", lambda: os.rename(path, "data/in/other"))
attempt("replace", lambda: (open("new", "w").close(), os.rename("new", path)))
attempt("link", lambda: os.link(path, "hard"))
attempt("rmdir", lambda: os.rmdir("data/in"))
attempt("exec", lambda: os.execv("tool", ["tool"]))
with open("tool", "rb") as tool:
    attempt("map", lambda: mmap.mmap(tool.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC))
print(open(path).read(), end="")
)";

}  // namespace

TEST_CASE("an input can be read, and no process inside can change, replace or run it") {
    const TemporaryDirectory host;
    make_file(host.path() + "/table.csv", "a,b\n1,2\n", 0666);
    make_file(host.path() + "/tool", std::string(8192, '#'), 0755);
    auto sandbox = make_sandbox(policy_with(
        {{host.path() + "/table.csv", "data/in/table.csv"}, {host.path() + "/tool", "tool"}}));
    const Ran ran = run_python(sandbox, kTryToChange);
    CHECK(
        ran.out ==
        "write EROFS\ntruncate EROFS\nchmod EROFS\nutime EROFS\nunlink EBUSY\nrename EBUSY\n"
        "replace EBUSY\nlink EXDEV\nrmdir ENOTEMPTY\nexec EACCES\nmap EPERM\na,b\n1,2\n");
    // The control: beside it the guest may write.
    CHECK(
        run_inside(
            sandbox,
            {"/usr/bin/sh",
             "-c",
             "cp data/in/table.csv data/in/copy && echo 3 >> data/in/copy && cat data/in/copy"})
            .out == "a,b\n1,2\n3\n");
    CHECK(
        run_inside(
            sandbox,
            {"/usr/bin/grep",
             "-c",
             " /workspace/.* ro,nosuid,nodev,noexec",
             "/proc/self/mountinfo"})
            .out == "2\n");
    require_ok(sandbox.kill_workers(kPatience));
    CHECK(run_inside(sandbox, {"/usr/bin/cat", "data/in/table.csv"}).out == "a,b\n1,2\n");
    require_ok(sandbox.destroy(kPatience));
    CHECK(read_file(host.path() + "/table.csv", 100).value() == "a,b\n1,2\n");
}

TEST_CASE("a guest that moves the directories above an input moves nothing of the host's") {
    const TemporaryDirectory host;
    make_file(host.path() + "/file", "operator's");
    auto sandbox = make_sandbox(policy_with({{host.path() + "/file", "a/b/file"}}));
    CHECK(
        run_inside(
            sandbox,
            {"/usr/bin/sh", "-c", "mv a c && mkdir -p a/b && echo guest > a/b/file; cat c/b/file"})
            .out == "operator's");
    // The server stays on the workspace's own mount and does not follow into the input's.
    const Workspace workspace(sandbox);
    CHECK(workspace.open_for_reading("c/b/file").has_error());
    // An upload in its place takes the input away (rename(2) detaches mounts of other namespaces),
    // and leaves the host's file alone.
    require_ok(workspace.write_file("c/b/file", "uploaded"));
    CHECK(run_inside(sandbox, {"/usr/bin/cat", "c/b/file"}).out == "uploaded");
    CHECK(read_all(workspace.open_for_reading("a/b/file").value().fd.get()) == "guest\n");
    require_ok(sandbox.destroy(kPatience));
    CHECK(read_file(host.path() + "/file", 100).value() == "operator's");
}

TEST_CASE("only a regular file is an input: no link, directory, fifo, socket, device or nothing") {
    const TemporaryDirectory host;
    const auto at = [&](const char* name) { return host.path() + "/" + name; };
    make_file(at("file"), "x");
    REQUIRE(::symlink("file", at("link").c_str()) == 0);
    REQUIRE(::mkdir(at("directory").c_str(), 0755) == 0);
    make_file(at("directory") + "/inner", "x");
    REQUIRE(::symlink("directory", at("way").c_str()) == 0);
    REQUIRE(::mkfifo(at("fifo").c_str(), 0644) == 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, at("socket").c_str(), sizeof(address.sun_path) - 1);
    const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    for (const std::string& source :
         {at("link"),
          at("way/inner"),
          at("directory"),
          at("fifo"),
          at("socket"),
          at("nothing"),
          std::string("/dev/null")}) {
        INFO(source);
        const auto made = Sandbox::create(policy_with({{source, "in"}}));
        REQUIRE(made.has_error());
        CHECK_THAT(made.error().message(), Catch::Contains("open input " + source));
    }
    CHECK(Sandbox::create(policy_with({{at("file"), "in"}})).has_value());
    CHECK(Sandbox::create(policy_with({{at("directory/inner"), "in"}})).has_value());
}

TEST_CASE("as many inputs as there may be, none of them counted against the workspace") {
    const TemporaryDirectory host;
    std::vector<InputMount> inputs;
    make_file(host.path() + "/big", std::string(1U << 20U, 'x'));
    for (std::size_t i = 0; i < kInputsMax; ++i) {
        inputs.push_back({host.path() + "/big", "in/" + std::to_string(i)});
    }
    Policy policy = policy_with(inputs);
    policy.limits.workspace_bytes = 1U << 20U;
    auto sandbox = make_sandbox(policy);
    CHECK(run_inside(sandbox, {"/usr/bin/sh", "-c", "cat in/* | wc -c"}).out == "67108864\n");
    require_ok(sandbox.destroy(kPatience));
    policy.inputs.push_back({host.path() + "/big", "in/more"});
    const auto refused = Sandbox::create(policy);
    REQUIRE(refused.has_error());
    CHECK(refused.error().code() == ErrorCode::kInvalidArgument);
}

TEST_CASE("an input that the session's user may not read is not read") {
    if (::geteuid() != 0) {
        return;  // An ordinary user's sessions are that user.
    }
    const TemporaryDirectory host;
    make_file(host.path() + "/secret", "x", 0600);
    auto sandbox = make_sandbox(policy_with({{host.path() + "/secret", "secret"}}));
    CHECK(probe_inside(sandbox, {"open", "/workspace/secret", "r"}) == "EACCES");
    CHECK(probe_outside({"open", host.path() + "/secret", "r"}) == "ok");
    require_ok(sandbox.destroy(kPatience));
}

}  // namespace cellkeep::test
