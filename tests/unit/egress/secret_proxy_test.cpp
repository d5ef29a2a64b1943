// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/egress/tls/tls_authority.hpp"
#include "tests/unit/egress/index_host.hpp"

#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>

#include <array>

using namespace cellkeep;
using namespace cellkeep::egress;
using Catch::Matchers::Contains;
namespace asio = boost::asio;

namespace {

constexpr const char* kApiHost = "api.example";
constexpr const char* kBearerValue = "Bearer r3al-v4lue";

/// A server behind TLS, with an authority that clients trust only if the test adds it.
class TlsServer {
 public:
    explicit TlsServer(std::string answer, const Host& certificate_for = {kApiHost, false})
        : authority_(TlsAuthority::create().value()),
          context_(authority_->context_for(certificate_for).value()),
          answer_(std::move(answer)),
          server_([this](Wire& wire) { serve(wire); }) {}

    const std::string& pem() const { return authority_->pem(); }
    std::uint16_t port() const { return server_.port(); }
    std::vector<std::string> requests;

 private:
    void serve(Wire& wire) {
        asio::ssl::stream<Wire&> stream(wire, *context_);
        boost::system::error_code error;
        (void)stream.handshake(asio::ssl::stream_base::server, error);
        if (error) {
            return;
        }
        std::string request;
        std::array<char, 4096> piece{};
        while (!error && request.find("\r\n\r\n") == std::string::npos) {
            request.append(piece.data(), stream.read_some(asio::buffer(piece), error));
        }
        requests.push_back(request);
        (void)asio::write(stream, asio::buffer(answer_), error);
        (void)stream.shutdown(error);
    }

    std::unique_ptr<TlsAuthority> authority_;
    std::shared_ptr<asio::ssl::context> context_;
    std::string answer_;
    FakeServer server_;
};

Secret make_secret(std::uint16_t port) {
    Secret secret;
    secret.binding = {"tracker", "TRACKER_TOKEN", {kApiHost, port, false}, "Authorization"};
    secret.value = kBearerValue;
    secret.path = "/v1";
    secret.methods = {"GET"};
    return secret;
}

/// A client in the session: a tunnel, TLS inside it, one request.
class InnerClient {
 public:
    InnerClient(ProxyFixture& fixture, const std::string& authority, const std::string& trusted)
        : wire_(fixture.connect()),
          context_(make_client_context(trusted).value()),
          stream_(wire_, *context_) {
        wire_.send("CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n\r\n");
        (void)wire_.read_until("\r\n\r\n");
        REQUIRE(SSL_set_tlsext_host_name(stream_.native_handle(), kApiHost) == 1);
        stream_.set_verify_callback(asio::ssl::host_name_verification(kApiHost));
        (void)stream_.handshake(asio::ssl::stream_base::client, error_);
    }
    bool trusted() const { return !error_; }
    void send(const std::string& request) {
        (void)asio::write(stream_, asio::buffer(request), error_);
    }
    std::string ask(const std::string& request) {
        send(request);
        return read();
    }
    /// To the end.
    std::string read() {
        std::string answer;
        std::array<char, 4096> piece{};
        while (!error_) {
            answer.append(piece.data(), stream_.read_some(asio::buffer(piece), error_));
        }
        return answer;
    }
    /// Whether the proxy says its goodbye, and nothing else.
    bool ended_properly() { return read().empty() && error_ == asio::error::eof; }

 private:
    Wire wire_;
    std::shared_ptr<asio::ssl::context> context_;
    asio::ssl::stream<Wire&> stream_;
    boost::system::error_code error_;
};

std::string api_authority(std::uint16_t port) {
    return std::string(kApiHost) + ":" + std::to_string(port);
}

std::string inner(
    const std::string& path, const std::string& host, const std::string& fields = "") {
    return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + fields +
           "\r\n";
}

ProxyFixture::Setup setup_for(const TlsServer& server) {
    ProxyFixture::Setup setup;
    setup.allow = {api_authority(server.port())};
    setup.secrets = {make_secret(server.port())};
    setup.trusted = server.pem();
    return setup;
}

}  // namespace

TEST_CASE(
    "the real header reaches the bound host and nothing of it comes back", "[egress][secret]") {
    TlsServer server(
        "HTTP/1.1 200 OK\r\nX-Echo: Bearer r3al-v4lue\r\nContent-Length: 14\r\n\r\n<r3al-v4lue>ok");
    ProxyFixture fixture(setup_for(server));
    resolve_to_loopback(fixture, kApiHost);
    const std::string authority = api_authority(server.port());
    InnerClient client(fixture, authority, fixture.authority().pem());
    REQUIRE(client.trusted());
    const std::string answer = client.ask(inner(
        "/v1/items",
        authority,
        "Authorization: Bearer cellkeep-placeholder\r\nauthorization: Bearer mine\r\n"
        "Cookie: a=b\r\nX-Api-Key: c\r\nAccept-Encoding: gzip\r\n"
        "x-http-method-override: DELETE\r\nX_Original_URL: /x\r\nRange: bytes=1-2\r\n"));
    CHECK(status_in(answer) == 200);
    CHECK_THAT(
        answer,
        Contains("<**********>ok") && Contains("X-Echo: Bearer **********\r\n") &&
            !Contains("r3al"));
    REQUIRE(server.requests.size() == 1);
    CHECK_THAT(
        server.requests[0],
        Contains("\r\nAuthorization: Bearer r3al-v4lue\r\n") &&
            Contains("Accept-Encoding: identity") && !Contains("placeholder") &&
            !Contains("mine") && !Contains("Cookie") && !Contains("Api-Key") && !Contains("gzip") &&
            !Contains("DELETE") && !Contains("X_Original") && !Contains("Range"));
    const auto records = fixture.wait_for_records(2);
    CHECK(records[1].secret == "tracker");
    CHECK(records[1].reason == Reason::kAllowed);
}

TEST_CASE(
    "a request that the secret is not for does not reach the bound host", "[egress][secret]") {
    TlsServer server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    ProxyFixture fixture(setup_for(server));
    resolve_to_loopback(fixture, kApiHost);
    const std::string authority = api_authority(server.port());
    const std::vector<std::pair<std::string, std::string>> requests = {
        {inner("/v2", authority), "secret_scope"},
        {inner("/v1/../v2", authority), "secret_scope"},
        {"POST /v1 HTTP/1.1\r\nHost: " + authority + "\r\nConnection: close\r\n\r\n",
         "secret_scope"},
        {inner("/v1", "other.example"), "host_mismatch"},
        {inner("/v1", kApiHost), "host_mismatch"},
        {inner("http://" + authority + "/v1", authority), "bad_target"},
        {"CONNECT other.example:443 HTTP/1.1\r\nHost: " + authority + "\r\n\r\n", "method_refused"},
    };
    for (const auto& [request, code] : requests) {
        CAPTURE(request);
        InnerClient client(fixture, authority, fixture.authority().pem());
        REQUIRE(client.trusted());
        CHECK(denied(client.ask(request)) == code);
    }
    CHECK(server.requests.empty());
}

TEST_CASE("a client of a tunnel that ends here need not close TLS properly", "[egress][secret]") {
    TlsServer server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    auto setup = setup_for(server);
    // Long enough for a handshake on a busy machine.
    setup.limits.idle_timeout = std::chrono::seconds(3);
    setup.limits.goodbye_timeout = std::chrono::milliseconds(50);
    ProxyFixture fixture(std::move(setup));
    resolve_to_loopback(fixture, kApiHost);
    const InnerClient client(fixture, api_authority(server.port()), fixture.authority().pem());
    REQUIRE(client.trusted());
    fixture.wait_for_connections(0);
}

TEST_CASE("a compressed answer of the bound host does not come back", "[egress][secret]") {
    const auto [coding, status] =
        GENERATE(table<std::string, int>({{"gzip", 502}, {"identity", 200}}));
    TlsServer server(
        "HTTP/1.1 200 OK\r\nContent-Encoding: " + coding + "\r\nContent-Length: 4\r\n\r\nr3al");
    ProxyFixture fixture(setup_for(server));
    resolve_to_loopback(fixture, kApiHost);
    const std::string authority = api_authority(server.port());
    InnerClient client(fixture, authority, fixture.authority().pem());
    REQUIRE(client.trusted());
    const std::string answer = client.ask(inner("/v1", authority));
    CHECK(status_in(answer) == status);
    if (status != 200) {
        CHECK(denied(answer) == "upstream_protocol");
        CHECK_THAT(answer, !Contains("r3al"));
    }
}

TEST_CASE("every secret of a host is masked in its answers", "[egress][secret]") {
    TlsServer server("HTTP/1.1 200 \r\nContent-Length: 23\r\n\r\n<r3al-v4lue><0ther-one>");
    auto setup = setup_for(server);
    setup.secrets.push_back(make_secret(server.port()));
    setup.secrets[1].binding.name = "other";
    setup.secrets[1].value = "Bearer 0ther-one";
    setup.secrets[1].path = "/v2";
    ProxyFixture fixture(std::move(setup));
    resolve_to_loopback(fixture, kApiHost);
    const std::string authority = api_authority(server.port());
    InnerClient client(fixture, authority, fixture.authority().pem());
    REQUIRE(client.trusted());
    CHECK_THAT(
        client.ask(inner("/v1", authority)),
        Contains("200") && Contains("<**********><*********>"));
}

TEST_CASE("the secret of https does not go out in the clear", "[egress][secret]") {
    TlsServer server("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    ProxyFixture fixture(setup_for(server));
    resolve_to_loopback(fixture, kApiHost);
    const std::string authority = api_authority(server.port());
    const std::string answer =
        fixture.ask("GET http://" + authority + "/v1 HTTP/1.1\r\nHost: " + authority + "\r\n\r\n");
    CHECK(denied(answer) == "secret_scheme");
    CHECK(server.requests.empty());
}

TEST_CASE("a server whose certificate is not the host's gets no secret", "[egress][secret]") {
    const bool wrong_name = GENERATE(true, false);
    TlsServer server(
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        wrong_name ? Host{"other.example", false} : Host{kApiHost, false});
    auto setup = setup_for(server);
    if (!wrong_name) {
        setup.trusted.clear();  // right name, unknown authority
    }
    ProxyFixture fixture(std::move(setup));
    resolve_to_loopback(fixture, kApiHost);
    const std::string authority = api_authority(server.port());
    InnerClient client(fixture, authority, fixture.authority().pem());
    REQUIRE(client.trusted());
    CHECK(denied(client.ask(inner("/v1", authority))) == "upstream_tls");
    CHECK(server.requests.empty());
}

TEST_CASE(
    "a client must trust the authority, and no other host is terminated", "[egress][secret]") {
    TlsServer server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    const std::string authority = api_authority(server.port());
    SECTION("without it the handshake fails") {
        ProxyFixture fixture(setup_for(server));
        resolve_to_loopback(fixture, kApiHost);
        const InnerClient client(fixture, authority, server.pem());
        CHECK_FALSE(client.trusted());
        CHECK(server.requests.empty());
    }
    SECTION("a host without a secret shows its own certificate") {
        auto setup = setup_for(server);
        setup.secrets.clear();
        ProxyFixture fixture(std::move(setup));
        resolve_to_loopback(fixture, kApiHost);
        InnerClient client(fixture, authority, server.pem());
        REQUIRE(client.trusted());
        CHECK(status_in(client.ask(inner("/anything", authority))) == 200);
    }
}

TEST_CASE("a secret of http is put into requests to its host", "[egress][secret]") {
    std::vector<std::string> requests;
    const FakeServer server(
        answer_with("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", &requests));
    const std::string authority = api_authority(server.port());
    ProxyFixture::Setup setup;
    setup.allow = {authority};
    setup.secrets = {make_secret(server.port())};
    setup.secrets[0].tls = false;
    ProxyFixture fixture(std::move(setup));
    resolve_to_loopback(fixture, kApiHost);
    CHECK(
        status_in(fixture.ask(
            "GET http://" + authority + "/v1 HTTP/1.1\r\nHost: " + authority +
            "\r\nAuthorization: x\r\n\r\n")) == 200);
    REQUIRE(requests.size() == 1);
    CHECK_THAT(requests[0], Contains(kBearerValue) && !Contains("Authorization: x"));
}

TEST_CASE(
    "a tunnel that ends here is closed as TLS wants it when the proxy passes", "[egress][secret]") {
    TlsServer server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    auto setup = setup_for(server);
    setup.limits.goodbye_timeout = std::chrono::hours(1);
    ProxyFixture fixture(std::move(setup));
    resolve_to_loopback(fixture, kApiHost);
    const std::string authority = api_authority(server.port());
    const std::string pem = fixture.authority().pem();
    InnerClient idle(fixture, authority, pem);
    REQUIRE(idle.trusted());
    std::weak_ptr<SessionProxy> before;
    fixture.run([&] { before = fixture.proxy().weak_from_this(); });
    const auto written = fixture.pass_on();
    CHECK(written["connections"].empty());
    CHECK_THAT(written.dump(), !Contains("r3al"));
    // Also for a client that says nothing.
    fixture.wait_until([&] { return before.expired(); });
    CHECK(idle.ended_properly());
    // What trusted it before trusts it now, and the secret is put in.
    InnerClient next(fixture, authority, pem);
    REQUIRE(next.trusted());
    CHECK(status_in(next.ask(inner("/v1", authority))) == 200);
    REQUIRE(server.requests.size() == 1);
    CHECK_THAT(server.requests[0], Contains(kBearerValue));
}

TEST_CASE("a request that waits in TLS is answered before the proxy passes", "[egress][secret]") {
    TlsServer server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    auto setup = setup_for(server);
    setup.limits.goodbye_timeout = std::chrono::milliseconds(50);
    ProxyFixture fixture(std::move(setup));
    resolve_to_loopback(fixture, kApiHost);
    const std::string authority = api_authority(server.port());
    InnerClient client(fixture, authority, fixture.authority().pem());
    REQUIRE(client.trusted());
    fixture.wait_until([&] { return fixture.proxy().is_at_rest(); });
    bool rests = true;
    fixture.run([&] {
        // On the proxy's own thread: it has come, and nobody has read it.
        client.send(inner("/v1", authority));
        rests = fixture.proxy().is_at_rest();
    });
    CHECK_FALSE(rests);
    CHECK(status_in(client.read()) == 200);
    (void)fixture.pass_on();
    CHECK(server.requests.size() == 1);
}
