// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/env/source_workshop.hpp"

#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace cellkeep::cli {
namespace {

namespace fs = std::filesystem;

/// What is left in the workspace of a build, and where its wheel goes.
struct Built {
    Built() {
        fs::create_directories(inside.file("wheels"));
        fd = UniqueFd(::open(inside.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
        REQUIRE(fd);
    }
    void put(const std::string& name, std::size_t bytes) const {
        std::ofstream(inside.file("wheels/" + name)) << std::string(bytes, 'w');
    }
    Result<std::string> take(std::uint64_t bytes_max) const {
        const sandbox::Workspace workspace(fd.get(), ::geteuid(), ::getegid());
        return take_wheel(workspace, outside.path(), bytes_max);
    }

    test::TemporaryDirectory inside;
    test::TemporaryDirectory outside;
    UniqueFd fd;
};

bool has_in_a_row(const std::vector<std::string>& words, const std::vector<std::string>& some) {
    return std::search(words.begin(), words.end(), some.begin(), some.end()) != words.end();
}

TEST_CASE("a build takes wheels, but for its own source, from the index", "[cli][environments]") {
    const environments::SourceOrder order{"doc-opt", {"Doc.Opt==1"}, "", "/nonexistent", {}, 0};
    const auto plain = nlohmann::json::parse(
        source_command(order, "http://index.example:81/simple/", "index.example:81"));
    const auto words = plain["command"].get<std::vector<std::string>>();
    CHECK(has_in_a_row(words, {"-I", "-m", "pip", "wheel"}));
    CHECK(has_in_a_row(words, {"--only-binary", ":all:", "--no-binary", "doc-opt"}));
    CHECK(has_in_a_row(words, {"--index-url", "http://index.example:81/simple/"}));
    CHECK(has_in_a_row(words, {"--trusted-host", "index.example:81"}));
    CHECK(has_in_a_row(words, {"--no-deps"}));
    CHECK(plain["text"] == kSourceTextBytesMax);
    const std::string safe = source_command(order, "https://index.example/", "");
    CHECK(safe.find("--trusted-host") == std::string::npos);
}

TEST_CASE("of a build one wheel is taken, as large as it may be", "[cli][environments]") {
    const Built built;
    built.put("a-1-py3-none-any.whl", 1000);
    CHECK(built.take(999).error().code() == ErrorCode::kLimitExceeded);
    fs::remove_all(built.outside.file("a-1-py3-none-any.whl"));
    CHECK(built.take(1000).value() == "a-1-py3-none-any.whl");
    const std::string copy = built.outside.file("a-1-py3-none-any.whl");
    CHECK(fs::file_size(copy) == 1000);
    struct stat info {};
    REQUIRE(::stat(copy.c_str(), &info) == 0);
    CHECK((info.st_mode & (S_IRWXG | S_IRWXO)) == 0);
    CHECK(built.take(1000).has_error());  // nothing is written over
}

TEST_CASE("what is not one wheel is not taken", "[cli][environments]") {
    const Built built;
    CHECK(built.take(1000).error().code() == ErrorCode::kUnavailable);
    fs::create_symlink("/etc/passwd", built.inside.file("wheels/a-1-py3-none-any.whl"));
    CHECK(built.take(1U << 20U).has_error());
    fs::remove(built.inside.file("wheels/a-1-py3-none-any.whl"));
    fs::create_directory(built.inside.file("wheels/a-1-py3-none-any.whl"));
    CHECK(built.take(1000).has_error());
    fs::remove(built.inside.file("wheels/a-1-py3-none-any.whl"));
    REQUIRE(::mkfifo(built.inside.file("wheels/a-1-py3-none-any.whl").c_str(), 0600) == 0);
    CHECK(built.take(1000).has_error());
    fs::remove(built.inside.file("wheels/a-1-py3-none-any.whl"));
    built.put("a-1-py3-none-any.whl", 10);
    built.put("b-1-py3-none-any.whl", 10);
    CHECK(built.take(1000).error().code() == ErrorCode::kUnavailable);
    CHECK(fs::is_empty(built.outside.path()));
    fs::remove_all(built.inside.file("wheels"));
    fs::create_symlink("/usr/lib", built.inside.file("wheels"));
    CHECK(built.take(1000).error().code() == ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace cellkeep::cli
