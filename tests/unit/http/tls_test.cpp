// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/http/socket/tls.hpp"

#include "kernel-manager/http/connection/connection.hpp"
#include "protocol/limits.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/unit/http/certificate.hpp"
#include "tests/unit/http/test_server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <fstream>
#include <string>

namespace cellkeep::http::test {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
namespace websocket = boost::beast::websocket;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using cellkeep::test::TemporaryDirectory;
using SslSocket = ssl::stream<asio::ip::tcp::socket>;

/// A client that trusts one certificate.
struct SslClient {
    SslClient(std::uint16_t port, const std::string& certificate) {
        context.load_verify_file(certificate);
        context.set_verify_mode(ssl::verify_peer);
        stream.next_layer().next_layer().connect({asio::ip::address_v4::loopback(), port});
    }
    SslSocket& socket() { return stream.next_layer(); }
    asio::io_context io{1};
    ssl::context context{ssl::context::tls_client};
    websocket::stream<SslSocket> stream{io, context};
};

std::string ask_over_tls(SslClient& client, const std::string& text) {
    asio::write(client.socket(), asio::buffer(text));
    std::string answer;
    boost::system::error_code error;
    (void)asio::read(client.socket(), asio::dynamic_buffer(answer), error);
    CHECK(error == asio::error::eof);  // and so a proper goodbye: a cut would be stream_truncated
    return answer;
}

std::string closing(const char* target) {
    return request_text("GET", target, "Connection: close\r\n");
}

struct Fixture {
    explicit Fixture(ConnectionLimits limits = {})
        : files(make_certificate(directory.path(), "server")),
          server(
              limits,
              "127.0.0.1:0",
              Trust::kToken,
              TlsContext::load(files.certificate, files.key).value()) {}
    TemporaryDirectory directory;
    CertificateFiles files;
    TestServer server;
};

TEST_CASE("HTTP is spoken behind TLS", "[http][tls]") {
    const Fixture fixture;
    SslClient client(fixture.server.port(), fixture.files.certificate);
    client.socket().handshake(ssl::stream_base::client);
    CHECK_THAT(ask_over_tls(client, closing("/ok")), EndsWith("{\"ok\":true}"));
    SslClient file(fixture.server.port(), fixture.files.certificate);
    file.socket().handshake(ssl::stream_base::client);
    CHECK_THAT(ask_over_tls(file, closing("/file")), EndsWith("\r\n\r\n23456"));
    CHECK_THAT(fixture.server.url(), StartsWith("https://127.0.0.1:"));
}

TEST_CASE("a refused upload behind TLS still gets its answer", "[http][tls]") {
    const Fixture fixture;
    SslClient client(fixture.server.port(), fixture.files.certificate);
    client.socket().handshake(ssl::stream_base::client);
    asio::write(
        client.socket(),
        asio::buffer(request_text("POST", "/echo", "", std::string(3'000'000, 'x'))));
    std::string answer;
    (void)asio::read_until(client.socket(), asio::dynamic_buffer(answer), "\r\n\r\n");
    CHECK_THAT(answer, StartsWith("HTTP/1.1 413 "));
}

TEST_CASE("WebSockets work behind TLS", "[http][tls]") {
    Fixture fixture;
    SslClient client(fixture.server.port(), fixture.files.certificate);
    client.socket().handshake(ssl::stream_base::client);
    client.stream.set_option(
        websocket::stream_base::decorator([](websocket::request_type& request) {
            request.set(boost::beast::http::field::authorization, "Bearer t");
        }));
    client.stream.handshake("localhost", "/echo-socket");
    for (const std::size_t bytes : {1U, 16'384U, 16'385U, 1'000'000U}) {
        CAPTURE(bytes);
        const std::string message(bytes, 'w');
        client.stream.write(asio::buffer(message));
        boost::beast::flat_buffer buffer;
        CHECK(client.stream.read(buffer) == bytes);
    }
    fixture.server.begin_stop();
    boost::beast::flat_buffer buffer;
    boost::system::error_code error;
    (void)client.stream.read(buffer, error);
    CHECK(error == websocket::error::closed);
    CHECK(client.stream.reason().code == 1012);
}

TEST_CASE("a WebSocket behind TLS is heard until its client goes", "[http][tls]") {
    const Fixture fixture;
    SslClient client(fixture.server.port(), fixture.files.certificate);
    client.socket().handshake(ssl::stream_base::client);
    client.stream.set_option(
        websocket::stream_base::decorator([](websocket::request_type& request) {
            request.set(boost::beast::http::field::authorization, "Bearer t");
        }));
    client.stream.handshake("localhost", "/leaving-socket");
    client.stream.write(asio::buffer(std::string("leave")));
    client.stream.write(asio::buffer(std::string("still here")));
    boost::beast::flat_buffer buffer;
    boost::system::error_code error;
    (void)client.stream.read(buffer, error);
    CHECK(error == websocket::error::closed);
    CHECK(client.stream.reason().code == 1012);
    CHECK(fixture.server.heard() == std::vector<std::string>{"still here"});
}

TEST_CASE("an old version of TLS is refused and the server lives", "[http][tls]") {
    Fixture fixture;
    {
        SslClient old(fixture.server.port(), fixture.files.certificate);
        REQUIRE(SSL_set_max_proto_version(old.socket().native_handle(), TLS1_1_VERSION) == 1);
        boost::system::error_code error;
        (void)old.socket().handshake(ssl::stream_base::client, error);
        CHECK(error);
        SslClient weak(fixture.server.port(), fixture.files.certificate);
        REQUIRE(SSL_set_max_proto_version(weak.socket().native_handle(), TLS1_2_VERSION) == 1);
        REQUIRE(SSL_set_cipher_list(weak.socket().native_handle(), "AES128-SHA") == 1);
        (void)weak.socket().handshake(ssl::stream_base::client, error);
        CHECK(error);
    }
    SslClient client(fixture.server.port(), fixture.files.certificate);
    client.socket().handshake(ssl::stream_base::client);
    CHECK_THAT(ask_over_tls(client, closing("/ok")), EndsWith("{\"ok\":true}"));
    fixture.server.stop();
    REQUIRE(fixture.server.records().size() == 3);
    CHECK_THAT(fixture.server.records()[1].note, StartsWith("TLS handshake: "));
    CHECK(fixture.server.records()[1].status == 0);
}

TEST_CASE("what is not TLS is dropped and logged", "[http][tls]") {
    Fixture fixture;
    const std::string text = GENERATE(
        std::string("GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        std::string(100, '\0'),
        std::string("\x16\x03\x01\x00\x05garbage", 12));
    {
        RawClient client(fixture.server.port());
        client.send(text);
        CHECK_THAT(client.read_all(), !Contains("HTTP/1.1"));
    }
    fixture.server.stop();
    REQUIRE(fixture.server.records().size() == 1);
    CHECK_THAT(fixture.server.records()[0].note, StartsWith("TLS handshake: "));
}

TEST_CASE("a handshake that does not come in time is ended", "[http][tls]") {
    ConnectionLimits limits;
    limits.head_timeout = std::chrono::milliseconds(50);
    Fixture fixture(limits);
    RawClient client(fixture.server.port());
    CHECK(client.read_all().empty());
    fixture.server.stop();
    REQUIRE(fixture.server.records().size() == 1);
    CHECK(fixture.server.records()[0].note == "TLS handshake: not in time");
}

TEST_CASE("files that cannot serve are named", "[http][tls]") {
    const TemporaryDirectory directory;
    const CertificateFiles good = make_certificate(directory.path(), "good");
    const CertificateFiles other = make_certificate(directory.path(), "other");
    const std::string garbage = directory.path() + "/garbage";
    std::ofstream(garbage) << "no PEM\n";
    REQUIRE(::chmod(garbage.c_str(), 0600) == 0);
    const auto failure = [](const std::string& certificate, const std::string& key) {
        const auto context = TlsContext::load(certificate, key);
        return context.has_error() ? context.error().message() : std::string("accepted");
    };
    CHECK(failure(good.certificate, good.key) == "accepted");
    CHECK_THAT(failure(directory.path() + "/none", good.key), Contains("/none"));
    CHECK_THAT(failure(good.certificate, directory.path() + "/none"), Contains("/none"));
    CHECK_THAT(failure(garbage, good.key), StartsWith(garbage));
    CHECK_THAT(failure(good.certificate, garbage), StartsWith(garbage));
    CHECK_THAT(failure(good.certificate, other.key), StartsWith(other.key));
    CHECK_THAT(failure(good.key, good.key), StartsWith(good.key));
    const std::string encrypted = encrypt_key(good.key);
    CHECK_THAT(failure(good.certificate, encrypted), StartsWith(encrypted));
    for (const mode_t mode : {mode_t{0604}, mode_t{0602}, mode_t{0666}}) {
        REQUIRE(::chmod(good.key.c_str(), mode) == 0);
        CHECK_THAT(failure(good.certificate, good.key), Contains("every user can reach this key"));
    }
    REQUIRE(::chmod(good.key.c_str(), 0640) == 0);
    CHECK(failure(good.certificate, good.key) == "accepted");
}

TEST_CASE("a pause closes a connection with TLS that waits for a request", "[http][tls]") {
    Fixture fixture;
    SslClient client(fixture.server.port(), fixture.files.certificate);
    client.socket().handshake(ssl::stream_base::client);
    asio::write(client.socket(), asio::buffer(request_text("GET", "/ok")));
    std::string answer;
    asio::read_until(client.socket(), asio::dynamic_buffer(answer), "{\"ok\":true}");
    CHECK_THAT(answer, StartsWith("HTTP/1.1 200 "));
    CHECK(fixture.server.pause(std::chrono::milliseconds(20'000)));
    CHECK(fixture.server.pass_on().connections.empty());
    boost::system::error_code error;
    answer.clear();
    (void)asio::read(client.socket(), asio::dynamic_buffer(answer), error);
    CHECK(error.failed());
    CHECK(answer.empty());
}

TEST_CASE("a client that does not end its TLS handshake ends no pause in vain", "[http][tls]") {
    Fixture fixture;
    RawClient silent(fixture.server.port());
    // The server has accepted the one before when it answers the next one.
    SslClient client(fixture.server.port(), fixture.files.certificate);
    client.socket().handshake(ssl::stream_base::client);
    constexpr auto kShortPause = 4 * kPausedStepPatience;
    static_assert(kShortPause < limits::kHttpHeadTimeout);
    CHECK(fixture.server.pause(kShortPause));
    CHECK(silent.read_all().empty());
}

}  // namespace
}  // namespace cellkeep::http::test
