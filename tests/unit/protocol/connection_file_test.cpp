// SPDX-License-Identifier: Apache-2.0
#include "protocol/connection_file.hpp"

#include "protocol/limits.hpp"
#include "protocol/support/syscall.hpp"
#include "tests/support/temporary_directory.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

using Catch::Matchers::Contains;
using cellkeep::ErrorCode;
using cellkeep::protocol::ConnectionInfo;
using cellkeep::protocol::load_connection_file;
using cellkeep::protocol::OthersMay;
using cellkeep::protocol::parse_connection_info;
using cellkeep::protocol::Transport;
using cellkeep::protocol::write_connection_file;
using cellkeep::test::TemporaryDirectory;
using nlohmann::json;

namespace limits = cellkeep::limits;

namespace {

ConnectionInfo example_info() {
    return ConnectionInfo{
        .transport = Transport::kIpc,
        .ip = "/run/user/0/cellkeep/s1",
        .shell_port = 1,
        .iopub_port = 2,
        .stdin_port = 3,
        .control_port = 4,
        .hb_port = 65535,
        .key = "secret",
        .signature_scheme = "hmac-sha256",
        .kernel_name = "python"};
}

// As jupyter_client 8 writes it.
json jupyter_example() {
    return {
        {"shell_port", 50001},
        {"iopub_port", 50002},
        {"stdin_port", 50003},
        {"control_port", 50004},
        {"hb_port", 50005},
        {"ip", "127.0.0.1"},
        {"key", "b8d2f6a0-1c6b3f1b2c0e5a"},
        {"transport", "tcp"},
        {"signature_scheme", "hmac-sha256"},
        {"kernel_name", "python3"},
        {"jupyter_session", "/home/u/a.ipynb"}};
}

void check_connection_refused(const json& value, const std::string& reason) {
    CAPTURE(value.dump(), reason);
    const auto info = parse_connection_info(value.dump());
    REQUIRE(info.has_error());
    CHECK(info.error().code() == ErrorCode::kInvalidArgument);
    CHECK_THAT(info.error().message(), Contains(reason));
}

void write_file(const std::string& path, const std::string& text, mode_t mode) {
    auto fd = cellkeep::open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    REQUIRE(fd.has_value());
    REQUIRE(cellkeep::write_all(fd.value().get(), text).has_value());
    REQUIRE(::fchmod(fd.value().get(), mode) == 0);
}

}  // namespace

TEST_CASE("a connection file survives its own text", "[protocol][connection]") {
    const auto info = parse_connection_info(to_json_text(example_info()));
    REQUIRE(info.has_value());
    CHECK(to_json_text(info.value()) == to_json_text(example_info()));
    CHECK(info.value().transport == Transport::kIpc);
    CHECK(info.value().hb_port == 65535);
}

TEST_CASE("what jupyter_client writes is understood", "[protocol][connection]") {
    const auto info = parse_connection_info(jupyter_example().dump());
    REQUIRE(info.has_value());
    CHECK(info.value().transport == Transport::kTcp);
    CHECK(info.value().endpoint(info.value().shell_port) == "tcp://127.0.0.1:50001");
    CHECK(info.value().key == "b8d2f6a0-1c6b3f1b2c0e5a");
    CHECK(info.value().kernel_name == "python3");
}

TEST_CASE("an endpoint is spelled as ZeroMQ wants it", "[protocol][connection]") {
    auto info = example_info();
    CHECK(info.endpoint(2) == "ipc:///run/user/0/cellkeep/s1-2");
    info.transport = Transport::kTcp;
    info.ip = "::1";
    CHECK(info.endpoint(5555) == "tcp://[::1]:5555");
}

TEST_CASE("ports may be strings, as JEP 106 allows", "[protocol][connection]") {
    auto value = jupyter_example();
    value["shell_port"] = "50001";
    value["hb_port"] = "1";
    const auto info = parse_connection_info(value.dump());
    REQUIRE(info.has_value());
    CHECK(info.value().shell_port == 50001);
    CHECK(info.value().hb_port == 1);
}

TEST_CASE("transport and scheme default as in jupyter_client", "[protocol][connection]") {
    auto value = jupyter_example();
    value.erase("transport");
    value.erase("signature_scheme");
    value.erase("kernel_name");
    const auto info = parse_connection_info(value.dump());
    REQUIRE(info.has_value());
    CHECK(info.value().transport == Transport::kTcp);
    CHECK(info.value().signature_scheme == "hmac-sha256");
}

TEST_CASE("a wrong port is refused by name", "[protocol][connection]") {
    const std::string name =
        GENERATE("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port");
    auto value = jupyter_example();
    value.erase(name);
    check_connection_refused(value, name + ": missing");
    for (const json& wrong :
         {json(0),
          json(-1),
          json(65536),
          json(1.0),
          json(18446744073709551615ULL),
          json(nullptr),
          json(true),
          json::array({1}),
          json(""),
          json("0"),
          json("-1"),
          json("+1"),
          json(" 1"),
          json("1 "),
          json("1.0"),
          json("0x10"),
          json("65536"),
          json("99999999999999999999"),
          json("http")}) {
        value[name] = wrong;
        check_connection_refused(value, name + ": not a port");
    }
}

TEST_CASE("a missing or wrong field is refused by name", "[protocol][connection]") {
    for (const char* name : {"ip", "key"}) {
        auto value = jupyter_example();
        value.erase(name);
        check_connection_refused(value, std::string(name) + ": missing");
    }
    for (const char* name : {"ip", "key", "transport", "signature_scheme", "kernel_name"}) {
        auto value = jupyter_example();
        value[name] = 5;
        check_connection_refused(value, std::string(name) + ": not a string");
        value[name] = nullptr;
        check_connection_refused(value, std::string(name) + ": not a string");
    }
    const auto with = [](const char* name, const std::string& text) {
        auto value = jupyter_example();
        value[name] = text;
        return value;
    };
    check_connection_refused(with("transport", "inproc"), "transport: must be");
    check_connection_refused(with("transport", ""), "transport: must be");
    check_connection_refused(with("ip", ""), "ip: ");
    check_connection_refused(with("ip", std::string("a\0b", 3)), "ip: ");
    check_connection_refused(with("ip", "a\nb"), "ip: ");
    check_connection_refused(with("signature_scheme", ""), "signature_scheme: must be");
    check_connection_refused(with("signature_scheme", "hmac-sha1"), "signature_scheme: must be");
}

TEST_CASE("text that is not an object is refused", "[protocol][connection]") {
    for (const char* text : {"", "{", "[]", "null", "\"{}\"", "{}x"}) {
        CAPTURE(text);
        const auto info = parse_connection_info(text);
        REQUIRE(info.has_error());
        CHECK(info.error().code() == ErrorCode::kInvalidArgument);
    }
}

TEST_CASE("a connection file is written for its owner alone", "[protocol][connection]") {
    const TemporaryDirectory directory;
    const std::string path = directory.file("kernel-1.json");
    REQUIRE(write_connection_file(path, example_info()).has_value());
    REQUIRE(write_connection_file(path, example_info()).has_value());  // replaced
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 07777U) == 0600U);
    CHECK(directory.entry_count() == 1);
    const auto info = load_connection_file(path);
    REQUIRE(info.has_value());
    CHECK(to_json_text(info.value()) == to_json_text(example_info()));
}

TEST_CASE("a link in the way is replaced, not followed", "[protocol][connection]") {
    const TemporaryDirectory directory;
    write_file(directory.file("victim"), "untouched", 0600);
    REQUIRE(::symlink("victim", directory.file("k.json").c_str()) == 0);
    REQUIRE(write_connection_file(directory.file("k.json"), example_info()).has_value());
    CHECK(cellkeep::read_file(directory.file("victim"), 100).value() == "untouched");
    CHECK(load_connection_file(directory.file("k.json")).has_value());
}

TEST_CASE("a directory that others can write is refused", "[protocol][connection]") {
    const TemporaryDirectory directory;
    for (const mode_t mode : {0777U, 0770U, 0722U}) {
        REQUIRE(::chmod(directory.path().c_str(), mode) == 0);
        const auto written = write_connection_file(directory.file("k.json"), example_info());
        REQUIRE(written.has_error());
        CHECK(written.error().code() == ErrorCode::kPermissionDenied);
        CHECK_FALSE(written.error().hint().empty());
        CHECK(directory.entry_count() == 0);
    }
    // With the sticky bit no user can replace another's file (Jupyter's runtime directory).
    REQUIRE(::chmod(directory.path().c_str(), 01777U) == 0);
    CHECK(write_connection_file(directory.file("k.json"), example_info()).has_value());
    CHECK(write_connection_file(directory.file("none/k.json"), example_info()).has_error());
}

TEST_CASE("a file that others may read or write is refused", "[protocol][connection]") {
    const TemporaryDirectory directory;
    const std::string text = to_json_text(example_info());
    for (const mode_t mode : {0644U, 0640U, 0620U, 0604U, 0602U, 0610U, 0601U, 0666U}) {
        CAPTURE(mode);
        const std::string path = directory.file(std::to_string(mode));
        write_file(path, text, mode);
        const auto info = load_connection_file(path);
        REQUIRE(info.has_error());
        CHECK(info.error().code() == ErrorCode::kPermissionDenied);
        CHECK_THAT(info.error().hint(), Contains("chmod 600"));
    }
    write_file(directory.file("good"), text, 0600);
    CHECK(load_connection_file(directory.file("good")).has_value());
}

TEST_CASE("where readers are accepted, writers are not", "[protocol][connection]") {
    const TemporaryDirectory directory;
    const std::string text = to_json_text(example_info());
    for (const mode_t mode : {0644U, 0640U, 0604U, 0600U}) {
        CAPTURE(mode);
        write_file(directory.file(std::to_string(mode)), text, mode);
        CHECK(load_connection_file(directory.file(std::to_string(mode)), OthersMay::kRead)
                  .has_value());
    }
    for (const mode_t mode : {0620U, 0602U, 0664U, 0666U}) {
        CAPTURE(mode);
        write_file(directory.file(std::to_string(mode)), text, mode);
        const auto info =
            load_connection_file(directory.file(std::to_string(mode)), OthersMay::kRead);
        REQUIRE(info.has_error());
        CHECK(info.error().code() == ErrorCode::kPermissionDenied);
        CHECK_THAT(info.error().message(), Contains("others may write it"));
    }
}

TEST_CASE("what is not a plain file of ours is refused", "[protocol][connection]") {
    const TemporaryDirectory directory;
    CHECK(load_connection_file(directory.file("none")).has_error());
    CHECK(load_connection_file(directory.path()).has_error());

    write_file(directory.file("good"), to_json_text(example_info()), 0600);
    REQUIRE(::symlink("good", directory.file("link").c_str()) == 0);
    CHECK(load_connection_file(directory.file("link")).has_error());

    // A FIFO must not block the reader.
    REQUIRE(::mkfifo(directory.file("fifo").c_str(), 0600) == 0);
    const auto fifo = load_connection_file(directory.file("fifo"));
    REQUIRE(fifo.has_error());
    CHECK(fifo.error().code() == ErrorCode::kInvalidArgument);

    if (::geteuid() == 0) {
        write_file(directory.file("foreign"), to_json_text(example_info()), 0600);
        REQUIRE(::chown(directory.file("foreign").c_str(), 65534, 65534) == 0);
        const auto foreign = load_connection_file(directory.file("foreign"));
        REQUIRE(foreign.has_error());
        CHECK(foreign.error().code() == ErrorCode::kPermissionDenied);
    }
}

TEST_CASE(
    "limits::kConnectionFileBytesMax bounds a connection file", "[protocol][connection][limits]") {
    const TemporaryDirectory directory;
    std::string text = to_json_text(example_info());
    text.resize(limits::kConnectionFileBytesMax, ' ');
    write_file(directory.file("max"), text, 0600);
    CHECK(load_connection_file(directory.file("max")).has_value());
    write_file(directory.file("more"), text + " ", 0600);
    const auto info = load_connection_file(directory.file("more"));
    REQUIRE(info.has_error());
    CHECK(info.error().code() == ErrorCode::kLimitExceeded);
}

TEST_CASE("a bad connection file is named in the error", "[protocol][connection]") {
    const TemporaryDirectory directory;
    const std::string path = directory.file("k.json");
    write_file(path, "{}", 0600);
    const auto info = load_connection_file(path);
    REQUIRE(info.has_error());
    CHECK_THAT(info.error().message(), Contains(path) && Contains("ip: missing"));
}
