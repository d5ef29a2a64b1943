// SPDX-License-Identifier: Apache-2.0
//
// A read-only path with a directory over it: a guest sees the files of both, and what a file or a
// directory says of itself leads to no file of the host's.
#include "protocol/support/syscall.hpp"
#include "tests/sandbox/fixture.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace cellkeep::test {

using sandbox::Policy;
using sandbox::ReadOnlyPath;
using sandbox::Sandbox;

namespace {

namespace fs = std::filesystem;

void put_file(const std::string& path, std::string_view text, mode_t mode = 0644) {
    fs::create_directories(fs::path(path).parent_path());
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, mode));
    REQUIRE(fd);
    REQUIRE(::fchmod(fd.get(), mode) == 0);
    require_ok(write_all(fd.get(), text));
}

/// Two directories, as an image and an environment are.
struct Layers {
    Layers() : path(scratch.path()) {
        put_file(path + "/below/a", "a below\n");
        put_file(path + "/below/both", "both below\n");
        put_file(path + "/below/deep/down/below", "deep below\n");
        put_file(path + "/over/b", "b over\n");
        put_file(path + "/over/both", "both over\n");
        put_file(path + "/over/deep/down/over", "deep over\n");
    }
    ReadOnlyPath at(const std::string& target) const {
        return {.source = path + "/below", .target = target, .over = path + "/over"};
    }
    Policy policy() const {
        Policy with = test_policy();
        with.read_only.push_back(at("/opt/data"));
        return with;
    }
    TemporaryDirectory scratch;
    std::string path;
};

std::string shown(Sandbox& sandbox, const std::string& path) {
    const Ran ran = run_inside(sandbox, {"/usr/bin/cat", path});
    return ran.status == 0 ? ran.out : "no such thing";
}

/// A file of both directories as an overlay shows it that believes what they say of their files.
std::string shown_by_trusting(const Layers& layers, const char* name) {
    const UniqueFd context(::fsopen("overlay", FSOPEN_CLOEXEC));
    REQUIRE(context);
    const std::string both = layers.path + "/over:" + layers.path + "/below";
    for (const auto& [option, value] :
         {std::pair("lowerdir", both.c_str()),
          std::pair("redirect_dir", "follow"),
          std::pair("metacopy", "on")}) {
        CAPTURE(option);
        REQUIRE(::fsconfig(context.get(), FSCONFIG_SET_STRING, option, value, 0) == 0);
    }
    REQUIRE(::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) == 0);
    const UniqueFd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY));
    REQUIRE(mount);
    const UniqueFd file(::openat(mount.get(), name, O_RDONLY | O_CLOEXEC));
    std::string text(100, '\0');
    const ssize_t got = ::read(file.get(), text.data(), text.size());
    return got < 0 ? "no such thing" : text.substr(0, static_cast<std::size_t>(got));
}

std::string why_not_made(const Policy& policy) {
    const auto sandbox = Sandbox::create(policy);
    REQUIRE(sandbox.has_error());
    return sandbox.error().message();
}

constexpr const char* kTryToWrite = R"(
import errno, os
os.chdir("/opt/data")
def attempt(name, what):
    try: what(); print(name, "ok")
    except OSError as error: print(name, errno.errorcode[error.errno])
attempt("write", lambda: open("both", "r+"))
attempt("create", lambda: open("new", "w"))
attempt("chmod", lambda: os.chmod("b", 0o777))
attempt("unlink", lambda: os.unlink("both"))
attempt("rename", lambda: os.rename("b", "c"))
attempt("mkdir", lambda: os.mkdir("deep/new"))
)";

}  // namespace

TEST_CASE("a guest sees the files of both directories, and of two of one name the one over") {
    const Layers layers;
    auto sandbox = make_sandbox(layers.policy());
    CHECK(shown(sandbox, "/opt/data/a") == "a below\n");
    CHECK(shown(sandbox, "/opt/data/b") == "b over\n");
    CHECK(shown(sandbox, "/opt/data/both") == "both over\n");
    CHECK(
        run_inside(sandbox, {"/usr/bin/ls", "/opt/data", "/opt/data/deep/down"}).out ==
        "/opt/data:\na\nb\nboth\ndeep\n\n/opt/data/deep/down:\nbelow\nover\n");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("nothing inside can change a file of either directory") {
    const Layers layers;
    for (const char* name : {"/below/both", "/over/both", "/over/b", "/over", "/below"}) {
        fs::permissions(layers.path + name, fs::perms::all);
    }
    auto sandbox = make_sandbox(layers.policy());
    CHECK(
        run_python(sandbox, kTryToWrite).out ==
        "write EROFS\ncreate EROFS\nchmod EROFS\nunlink EROFS\nrename EROFS\nmkdir EROFS\n");
    require_ok(sandbox.destroy(kPatience));
    CHECK(read_file(layers.path + "/over/both", 100).value() == "both over\n");
    CHECK(read_file(layers.path + "/below/both", 100).value() == "both below\n");
}

TEST_CASE("the mount of a directory over another has the flags of all others, and names no path") {
    const Layers layers;
    Policy policy = layers.policy();
    policy.read_only.push_back(layers.at("/opt/unrunnable"));
    policy.read_only.back().executable = false;
    auto sandbox = make_sandbox(policy);
    const std::string mounts = run_inside(sandbox, {"/usr/bin/cat", "/proc/self/mountinfo"}).out;
    CHECK_THAT(mounts, Catch::Contains(" /opt/data ro,nosuid,nodev,relatime - overlay"));
    CHECK_THAT(
        mounts, Catch::Contains(" /opt/unrunnable ro,nosuid,nodev,noexec,relatime - overlay"));
    CHECK(mounts.find(layers.path) == std::string::npos);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("programs run from there, without a set-user-ID bit's effect") {
    const Layers layers;
    const std::string program = layers.path + "/over/print-id";
    fs::copy_file("/usr/bin/id", program);
    fs::permissions(program, fs::perms(04755));
    auto sandbox = make_sandbox(layers.policy());
    CHECK(run_inside(sandbox, {"/opt/data/print-id", "-u"}).out == "1000\n");
    CHECK(
        run_inside(sandbox, {"/usr/bin/grep", "-P", "^NoNewPrivs:\\t1$", "/proc/self/status"})
            .status == 0);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a file of the host's that only root may read is not read through it") {
    const Layers layers;
    put_file(layers.path + "/below/secret", "secret\n", 0600);
    put_file(layers.path + "/over/hidden", "secret\n", 0600);
    Policy policy = layers.policy();
    auto sandbox = make_sandbox(policy);
    if (sandbox::run_mode() == sandbox::RunMode::kRoot) {
        // An overlay reads with the rights of who made it, and asks for the guest's rights first.
        CHECK(shown(sandbox, "/opt/data/secret") == "no such thing");
        CHECK(shown(sandbox, "/opt/data/hidden") == "no such thing");
    }
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("links in both directories mean what they mean inside") {
    const Layers layers;
    put_file(layers.path + "/outside", "the host's\n");
    fs::create_symlink(layers.path + "/outside", layers.path + "/over/absolute");
    fs::create_symlink("../outside", layers.path + "/over/relative");
    fs::create_directory_symlink("..", layers.path + "/over/up");
    auto sandbox = make_sandbox(layers.policy());
    for (const char* name : {"absolute", "relative", "up/outside"}) {
        CAPTURE(name);
        CHECK(shown(sandbox, std::string("/opt/data/") + name) == "no such thing");
    }
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("what a layer says of its files leads to no others") {
    if (sandbox::run_mode() != sandbox::RunMode::kRoot) {
        return;  // Linux lets only root set these attributes, and reads none of an ordinary user's.
    }
    const Layers layers;
    const auto set = [&](const std::string& name, const char* key, const std::string& value) {
        const std::string path = layers.path + name;
        REQUIRE(::setxattr(path.c_str(), key, value.data(), value.size(), 0) == 0);
    };
    put_file(layers.path + "/below/other/inside", "moved\n");
    put_file(layers.path + "/over/redirected/own", "own\n");
    set("/over/redirected", "trusted.overlay.redirect", "/other");
    put_file(layers.path + "/over/metacopy", "empty\n");
    set("/over/metacopy", "trusted.overlay.metacopy", "");
    set("/over/metacopy", "trusted.overlay.redirect", "/other/inside");
    auto sandbox = make_sandbox(layers.policy());
    CHECK(shown(sandbox, "/opt/data/redirected/inside") == "no such thing");
    CHECK(shown(sandbox, "/opt/data/metacopy") == "no such thing");
    CHECK(shown(sandbox, "/opt/data/other/inside") == "moved\n");
    // The control: these attributes lead there where they are believed.
    CHECK(shown_by_trusting(layers, "redirected/inside") == "moved\n");
    CHECK(shown_by_trusting(layers, "metacopy") == "moved\n");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a whiteout hides a name and shows nothing; a device of a layer cannot be opened") {
    if (sandbox::run_mode() != sandbox::RunMode::kRoot) {
        return;  // mknod(2) is root's.
    }
    const Layers layers;
    REQUIRE(::mknod((layers.path + "/over/a").c_str(), S_IFCHR | 0666, makedev(0, 0)) == 0);
    REQUIRE(::mknod((layers.path + "/over/zero").c_str(), S_IFCHR | 0666, makedev(1, 5)) == 0);
    auto sandbox = make_sandbox(layers.policy());
    CHECK(shown(sandbox, "/opt/data/a") == "no such thing");
    CHECK(run_inside(sandbox, {"/usr/bin/head", "-c1", "/opt/data/zero"}).status != 0);
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("a source that is missing leaves what is over it, if it may be missing") {
    const Layers layers;
    Policy policy = test_policy();
    policy.read_only.push_back(layers.at("/opt/data"));
    policy.read_only.back().source = layers.path + "/nothing";
    CHECK_THAT(
        why_not_made(policy),
        Catch::Contains("lay a directory over read-only path " + layers.path + "/nothing"));
    policy.read_only.back().optional = true;
    auto sandbox = make_sandbox(policy);
    CHECK(run_inside(sandbox, {"/usr/bin/ls", "/opt/data"}).out == "b\nboth\ndeep\n");
    CHECK(
        run_inside(sandbox, {"/usr/bin/grep", "-c", "/opt/data ro,nosuid", "/proc/self/mountinfo"})
            .out == "1\n");
    require_ok(sandbox.destroy(kPatience));
}

TEST_CASE("what is to lie over a path must be there and a directory, also over an optional one") {
    const Layers layers;
    for (const bool optional : {false, true}) {
        for (const char* over : {"/nothing", "/over/b", "/over/b/c"}) {
            CAPTURE(optional, over);
            Policy policy = test_policy();
            policy.read_only.push_back(layers.at("/opt/data"));
            policy.read_only.back().optional = optional;
            policy.read_only.back().over = layers.path + over;
            CHECK_THAT(why_not_made(policy), Catch::Contains(layers.path + over));
        }
        Policy policy = test_policy();
        policy.read_only.push_back(layers.at("/opt/data"));
        policy.read_only.back().optional = optional;
        policy.read_only.back().source = layers.path + "/below/a";
        CHECK_THAT(why_not_made(policy), Catch::Contains("/below/a"));
    }
}

TEST_CASE("paths that are long, or of characters with a meaning in mount options, are taken") {
    const TemporaryDirectory scratch;
    const std::string long_name(200, 'x');
    for (const std::string& name :
         {std::string("a:b"),
          std::string("a,b"),
          std::string("a\\b=c"),
          long_name + "/" + long_name}) {
        CAPTURE(name);
        const std::string root = scratch.path() + "/" + name;
        put_file(root + "/below/a", "a\n");
        put_file(root + "/over/b", "b\n");
        Policy policy = test_policy();
        policy.read_only.push_back(
            {.source = root + "/below", .target = "/opt/data", .over = root + "/over"});
        auto sandbox = make_sandbox(policy);
        CHECK(run_inside(sandbox, {"/usr/bin/ls", "/opt/data"}).out == "a\nb\n");
        require_ok(sandbox.destroy(kPatience));
    }
}

TEST_CASE("sandboxes that a zygote makes see both, and it covers no policy with another over") {
    const Layers layers;
    const Policy policy = layers.policy();
    const auto zygote = make_zygote(policy);
    CHECK(zygote->covers(policy));
    Policy other = policy;
    other.read_only.back().over = layers.path + "/below";
    CHECK_FALSE(zygote->covers(other));
    other.read_only.back().over.clear();
    CHECK_FALSE(zygote->covers(other));
    auto made = Sandbox::create(policy, zygote);
    REQUIRE(made.has_value());
    CHECK(shown(made.value(), "/opt/data/a") == "a below\n");
    CHECK(shown(made.value(), "/opt/data/both") == "both over\n");
    CHECK(run_python(made.value(), kTryToWrite).out.find("ok") == std::string::npos);
    require_ok(made.value().destroy(kPatience));
}

TEST_CASE("a directory over all of /usr leaves its programs at work") {
    const Layers layers;
    Policy policy = test_policy();
    put_file(layers.path + "/over/bin/of-the-environment", "#!/bin/sh\necho here\n", 0755);
    for (ReadOnlyPath& path : policy.read_only) {
        if (path.target == "/usr") {
            path.over = layers.path + "/over";
        }
    }
    auto sandbox = make_sandbox(policy);
    CHECK(run_inside(sandbox, {"/usr/bin/of-the-environment"}).out == "here\n");
    CHECK(run_python(sandbox, "import ssl, json; print('python')").out == "python\n");
    require_ok(sandbox.destroy(kPatience));
}

}  // namespace cellkeep::test
