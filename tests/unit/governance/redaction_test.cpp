// SPDX-License-Identifier: Apache-2.0
//
// The secrets here are made up; they are put together from halves so that no scanner of source code
// takes them for real ones.
#include "kernel-manager/governance/redaction.hpp"

#include "kernel-manager/governance/secret_shape.hpp"
#include "protocol/support/syscall.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

using namespace cellkeep::session;

namespace {

const std::string kMixed =
    "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0aB3dE6gH9jK2";

std::string mixed(std::size_t length) {
    return kMixed.substr(0, length);
}

std::string hex(std::size_t length) {
    std::string text;
    while (text.size() < length) {
        text += "0f3a9c5e7b1d2846";
    }
    return text.substr(0, length);
}

}  // namespace

TEST_CASE("well-known keys are taken out wherever they stand", "[session][redaction]") {
    struct Row {
        std::string secret;
        std::string what;
    };
    const Row rows[] = {
        {"AKIA" + std::string("ZQ3D7KX2M5PW8RTY"), "aws-key"},
        {"ghp" + ("_" + mixed(36)), "github-token"},
        {"github" + ("_pat_" + mixed(22) + "_" + mixed(59)), "github-token"},
        {"glpat" + ("-" + mixed(20)), "gitlab-token"},
        {"sk-" + ("ant-api03-" + mixed(60)), "anthropic-key"},
        {"sk-" + ("proj-" + mixed(48)), "openai-key"},
        {"sk-" + mixed(48), "openai-key"},
        {"sk_" + ("live_" + mixed(24)), "stripe-key"},
        {"xox" + ("b-123456789012-" + mixed(24)), "slack-token"},
        {"AIza" + mixed(35), "google-key"},
        {"npm" + ("_" + mixed(36)), "npm-token"},
        {"hf" + ("_" + mixed(34)), "hugging-face-token"},
        {"pypi" + ("-" + mixed(60)), "pypi-token"},
        {"eyJ" + ("hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0." + mixed(43)), "jwt"},
        {"-----BEGIN RSA PRIVATE" +
             (" KEY-----\n" + mixed(64) + "\n" + mixed(30) + "==\n-----END RSA PRIVATE KEY-----"),
         "private-key"},
        {"-----BEGIN PRIVATE" + (" KEY-----\n" + mixed(64)), "private-key"},
    };
    for (const Row& row : rows) {
        INFO(row.secret);
        const std::string mark = "[redacted:" + row.what + "]";
        CHECK(redact(row.secret) == mark);
        CHECK(redact("x = '" + row.secret + "'; y") == "x = '" + mark + "'; y");
        CHECK(redact("one " + row.secret + "\n" + row.secret) == "one " + mark + "\n" + mark);
        CHECK(find_secrets(row.secret + " " + row.secret).count == 2);
    }
}

TEST_CASE("values are taken out by the names that they are given to", "[session][redaction]") {
    const std::string random = mixed(24);
    for (const std::string& line : std::vector<std::string>{
             "API_KEY=" + random,
             "export SERVICE_TOKEN=" + random,
             "client_secret: " + random,
             "  \"apiKey\": \"" + random + "\",",
             "os.environ['MY_SECRET'] = '" + random + "'",
             "aws_secret_access_key = " + random,
             "AUTH_TOKEN => \"" + random + "\"",
             "access_token=" + random + "&x=1",
             "Authorization: Bearer " + random,
             "Authorization: Basic dXNlcjpwYXNz",
             "'Authorization': 'token " + random + "'",
             "-H \"Authorization: " + random + "\"",
             "a Bearer " + random,
             "DB_PASSWORD = 'hunter2!'",
             "password: \"tr0ub4dor&3\"",
             "postgres://app:s3cr3tpw@db.internal:5432/x",
         }) {
        INFO(line);
        const Redaction redaction = find_secrets(line);
        CHECK(redaction.count == 1);
        for (const std::string& part :
             {random,
              std::string("dXNlcjpwYXNz"),
              std::string("hunter2"),
              std::string("tr0ub"),
              std::string("s3cr3tpw")}) {
            CHECK_THAT(redaction.text, !Catch::Contains(part));
        }
        CHECK(redact(redaction.text) == redaction.text);
    }
    CHECK(redact("API_KEY=" + random + " next") == "API_KEY=[redacted:secret] next");
}

TEST_CASE("ordinary code and data stay as they are", "[session][redaction]") {
    for (const std::string& line : std::vector<std::string>{
             "",
             "key = 'name'",
             "for key, value in items.items():",
             "token = self.next_token(3)",
             "token = tokens[i]",
             "sort_key=lambda row: row.date2024value",
             "df['price'] = df['price_2024'].astype(float)",
             "primary_key: 550e8400-e29b-41d4-a716-446655440000",
             "password = getpass.getpass()",
             "password = 'password'",
             "PASSWORD = \"${DB_PASSWORD}\"",
             "headers = {'Authorization': f'Bearer {token}'}",
             "Authorization: Bearer <your token>",
             "Authorization: Bearer your_token_here",
             "sha256:" + hex(64),
             "commit " + hex(40),
             "sk-learn-contrib-packages-for-everybody-else",
             "task-risk-disk-" + mixed(8),
             "monkey = 'aB3dE6gH9jK2mN5pQ8sT'",
             "http://localhost:8888/lab",
             "https://user@example.org/path",
             "http://user:password@proxy.example/",
             "-----BEGIN CERTIFICATE-----\n" + mixed(64) + "\n-----END CERTIFICATE-----",
             "-----BEGIN PRIVATE KEY-----",
             "AKIAEXAMPLE",
             "if token == 'aB3dE6gH9jK2mN5pQ8sT1': pass",
             "Überraschung: naïve café ☕",
         }) {
        INFO(line);
        CHECK(redact(line) == line);
    }
}

TEST_CASE("a document is redacted by its strings and its names", "[session][redaction]") {
    const std::string secret = "ghp" + ("_" + mixed(36));
    const nlohmann::json document = {
        {"message", "used " + secret},
        {"list", {1, true, nullptr, secret}},
        {"nested", {{"password", "hunter2"}, {"token", 17}, {"page_token", "next"}}},
        {secret, 1}};
    const nlohmann::json expected = {
        {"message", "used [redacted:github-token]"},
        {"list", {1, true, nullptr, "[redacted:github-token]"}},
        {"nested", {{"password", "[redacted:secret]"}, {"token", 17}, {"page_token", "next"}}},
        {"[redacted:github-token]", 1}};
    CHECK(redact_json(document) == expected);
    CHECK(redact_json(expected) == expected);
    CHECK(redact_json(nlohmann::json(secret)) == "[redacted:github-token]");
    CHECK(redact_json(17) == 17);
    const nlohmann::json below = {{secret, {{"password", "hunter2"}}}};
    CHECK(redact_json(below)["[redacted:github-token]"]["password"] == "[redacted:secret]");
}

TEST_CASE("a document that is nested too deeply is cut off where it is", "[session][redaction]") {
    const auto nested = [](int depth) {
        nlohmann::json value = 1;
        for (int i = 0; i < depth; ++i) {
            value = nlohmann::json::array({std::move(value)});
        }
        return value;
    };
    CHECK(redact_json(nested(64)) == nested(64));
    nlohmann::json cut = nullptr;
    for (int i = 0; i < 64; ++i) {
        cut = nlohmann::json::array({std::move(cut)});
    }
    CHECK(redact_json(nested(65)) == cut);
}

TEST_CASE("a source tree of ordinary code has next to no secrets", "[session][redaction]") {
    constexpr std::size_t kEnough = 4U << 20U;
    std::size_t bytes = 0;
    std::size_t files = 0;
    std::string hits;
    std::size_t count = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(CELLKEEP_ORDINARY_CODE)) {
        const auto& path = entry.path();
        if (!entry.is_regular_file() || path.extension() != ".py" ||
            path.string().find("-packages") != std::string::npos ||
            path.string().find("/test") != std::string::npos) {
            continue;
        }
        const auto text = cellkeep::read_file(path.string(), 16U << 20U);
        if (text.has_error() || bytes > kEnough) {
            continue;  // a link to a file that is not installed
        }
        ++files;
        bytes += text.value().size();
        const Redaction redaction = find_secrets(text.value());
        if (redaction.count > 0) {
            count += redaction.count;
            hits += path.string() + " ";
        }
    }
    INFO(hits);
    CHECK(files > 100);
    CHECK(count <= 1);
}

TEST_CASE("whatever the text, a second pass changes nothing", "[session][redaction]") {
    std::mt19937 random(20'251'122);
    const std::vector<std::string> pieces = {
        "API_KEY",
        "=",
        ":",
        " ",
        "\"",
        "'",
        "password",
        "Bearer ",
        "Authorization",
        "://",
        "@",
        mixed(20),
        mixed(40),
        hex(32),
        "sk-",
        "ghp_",
        "eyJ",
        ".eyJ",
        "-----BEGIN ",
        "PRIVATE KEY",
        "-----",
        "-----END ",
        "AKIA",
        "ZQ3D7KX2M5PW8RTY",
        "[redacted:",
        "secret]",
        "\n",
        "]",
        "_",
        std::string(1, '\0'),
        "\xff",
        "token",
        "a",
        "7"};
    for (int round = 0; round < 20'000; ++round) {
        std::string text;
        const std::size_t length = random() % 12;
        for (std::size_t i = 0; i < length; ++i) {
            text += pieces[random() % pieces.size()];
        }
        const std::string once = redact(text);
        INFO(text);
        REQUIRE(redact(once) == once);
    }
}

TEST_CASE("its work grows with the text and not with its square", "[session][redaction]") {
    // Each of these would take minutes if the time grew with the square of the pieces.
    constexpr std::size_t kBytes = 64U << 10U;
    for (const std::string& piece : std::vector<std::string>{
             "sk-",
             "eyJ-",
             "a_key=",
             "-----BEGIN PRIVATE KEY-----",
             "://a:",
             "Bearer ",
             "a",
             "password='",
             "Authorization:",
             "xoxb-",
             " ",
             "="}) {
        std::string text;
        while (text.size() < kBytes) {
            text += piece;
        }
        CHECK(find_secrets(text).text.size() > 0);
    }
}
