// SPDX-License-Identifier: Apache-2.0
#include "protocol/signer.hpp"

#include "protocol/limits.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

using Catch::Matchers::Contains;
using cellkeep::ErrorCode;
using cellkeep::protocol::Channel;
using cellkeep::protocol::Signer;

namespace limits = cellkeep::limits;

namespace {

const std::string kKey = "a0436f6c-1916-498b-8eb9-e81ab9368e84";
const std::string kSignedHeader = R"({"msg_id":"a","msg_type":"b"})";
const std::string kSignedContent = R"({"x":1})";
// Python: hmac.new(key, header + b"{}" + b"{}" + content, "sha256").hexdigest()
const std::string kSignature = "99e4a79afd96226d754757f13170ab7c74f893c845f56bdd61fc4da4138ed13a";

Signer make_signer(const std::string& key = kKey, const std::string& scheme = "hmac-sha256") {
    auto signer = Signer::create(scheme, key);
    REQUIRE(signer.has_value());
    return std::move(signer).value();
}

using Frames = std::vector<std::string_view>;

Frames good_frames() {
    return {"client", "<IDS|MSG>", kSignature, kSignedHeader, "{}", "{}", kSignedContent};
}

void check_opening_refused(
    Signer& signer, const Frames& frames, ErrorCode code, const std::string& reason) {
    CAPTURE(reason);
    const auto opened = signer.open(Channel::kShell, frames);
    REQUIRE(opened.has_error());
    CHECK(opened.error().code() == code);
    CHECK_THAT(opened.error().message(), Contains(reason));
}

}  // namespace

TEST_CASE("a signature made in slices is the same", "[protocol][signer]") {
    const auto message = cellkeep::protocol::Message::create(
        {.channel = Channel::kShell,
         .header = kSignedHeader,
         .parent_header = "{}",
         .metadata = "{}",
         .content = kSignedContent,
         .buffers = {"not signed"}});
    for (const std::size_t slice : {1U, 3U, 7U, 1000U}) {
        const Signer signer = make_signer();
        auto signing = signer.begin_signing(message.value());
        std::size_t turns = 0;
        while (!signing.advance(slice)) {
            ++turns;
        }
        CHECK(signing.finish() == kSignature);
        CHECK(turns >= (kSignedHeader.size() + kSignedContent.size()) / slice);
    }
    auto unsigned_one = make_signer("").begin_signing(message.value());
    CHECK(unsigned_one.advance(1));
    CHECK(unsigned_one.finish().empty());
}

TEST_CASE("a signature is the one that Python's hmac makes", "[protocol][signer]") {
    CHECK(make_signer().sign(kSignedHeader, "{}", "{}", kSignedContent) == kSignature);
    CHECK(
        make_signer(kKey, "hmac-sha512").sign(kSignedHeader, "{}", "{}", kSignedContent) ==
        "c7b9055919571d7b5483a2ddc6c15d4be97d9b2444fcb08d8cc991a7f8c552b1"
        "0d010ee4e6b1e6af2301ae378f64db8e07a278d862fd1abbd7a4669470d174a4");
    CHECK(
        make_signer(kKey, "hmac-md5").sign(kSignedHeader, "{}", "{}", kSignedContent) ==
        "9dc90a5b9acc6c9017b3a1e09259e969");
    // The keyed context is copied, not used up.
    const auto signer = make_signer();
    CHECK(signer.sign(kSignedHeader, "{}", "{}", kSignedContent) == kSignature);
    CHECK(signer.sign(kSignedHeader, "{}", "{}", kSignedContent) == kSignature);
}

TEST_CASE("a signed message opens into its parts", "[protocol][signer]") {
    auto signer = make_signer();
    auto frames = good_frames();
    frames.insert(frames.begin(), "router");
    frames.emplace_back("buffer");
    const auto opened = signer.open(Channel::kControl, frames);
    REQUIRE(opened.has_value());
    CHECK(opened.value().identities == std::vector<std::string>{"router", "client"});
    const auto& message = opened.value().message;
    CHECK(message.channel() == Channel::kControl);
    CHECK(message.header().msg_id == "a");
    CHECK(message.content_json() == kSignedContent);
    REQUIRE(message.buffer_count() == 1);
    CHECK(message.buffer(0) == "buffer");
}

TEST_CASE("what frames() makes, open() takes", "[protocol][signer]") {
    const std::string scheme = GENERATE("hmac-sha256", "hmac-sha512", "hmac-md5");
    const std::string key = GENERATE(std::string("k"), std::string(1000, 'k'), std::string());
    auto sender = make_signer(key, scheme);
    auto receiver = make_signer(key, scheme);
    const auto original = receiver.open(
        Channel::kShell,
        Frames{
            "<IDS|MSG>",
            sender.sign(kSignedHeader, "{}", "{}", kSignedContent),
            kSignedHeader,
            "{}",
            "{}",
            kSignedContent,
            "b1",
            "b2"});
    REQUIRE(original.has_value());
    CHECK(original.value().identities.empty());
    const auto& message = original.value().message;
    const std::string signature = sender.sign(
        message.header_json(),
        message.parent_header_json(),
        message.metadata_json(),
        message.content_json());
    const auto frames = sender.frames(message, signature);
    REQUIRE(frames.size() == 8);
    CHECK(frames[0] == "<IDS|MSG>");
    CHECK(frames[1].data() == signature.data());
    auto third = make_signer(key, scheme);
    const auto again = third.open(Channel::kShell, frames);
    REQUIRE(again.has_value());
    CHECK(again.value().message.frame() == message.frame());
}

TEST_CASE("any other signature is refused", "[protocol][signer]") {
    auto signer = make_signer();
    const auto with_signature = [](std::string_view signature) {
        auto frames = good_frames();
        frames[2] = signature;
        return frames;
    };
    const auto code = ErrorCode::kProtocol;
    check_opening_refused(signer, with_signature(""), code, "wrong length");
    check_opening_refused(signer, with_signature("9"), code, "wrong length");
    check_opening_refused(
        signer, with_signature(std::string_view(kSignature).substr(1)), code, "wrong length");
    check_opening_refused(
        signer, with_signature(std::string_view(kSignature).substr(0, 63)), code, "wrong length");
    const std::string longer = kSignature + "0";
    check_opening_refused(signer, with_signature(longer), code, "wrong length");
    const std::string much_longer(1'000'000, '9');
    check_opening_refused(signer, with_signature(much_longer), code, "wrong length");
    std::string upper = kSignature;
    std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) {
        return static_cast<char>(std::toupper(c));
    });
    check_opening_refused(signer, with_signature(upper), code, "does not match");
    for (std::size_t i = 0; i < kSignature.size(); ++i) {
        std::string changed = kSignature;
        changed[i] = changed[i] == '0' ? '1' : '0';
        check_opening_refused(signer, with_signature(changed), code, "does not match");
    }
    // None of the attempts used up the right signature.
    CHECK(signer.open(Channel::kShell, good_frames()).has_value());
}

TEST_CASE("every signed part is covered by the signature", "[protocol][signer]") {
    auto signer = make_signer();
    for (const std::size_t part : {3U, 4U, 5U, 6U}) {
        auto frames = good_frames();
        frames[part] = R"({"msg_id":"z","msg_type":"z"})";
        check_opening_refused(signer, frames, ErrorCode::kProtocol, "does not match");
    }
    auto other_key = make_signer(kKey + "x");
    check_opening_refused(other_key, good_frames(), ErrorCode::kProtocol, "does not match");
    auto other_scheme = make_signer(kKey, "hmac-sha512");
    check_opening_refused(other_scheme, good_frames(), ErrorCode::kProtocol, "wrong length");
}

TEST_CASE("a message is opened once", "[protocol][signer]") {
    auto signer = make_signer();
    REQUIRE(signer.open(Channel::kShell, good_frames()).has_value());
    check_opening_refused(signer, good_frames(), ErrorCode::kProtocol, "seen before");
    // Another identity or another channel does not make the message new.
    auto frames = good_frames();
    frames[0] = "somebody";
    check_opening_refused(signer, frames, ErrorCode::kProtocol, "seen before");
    CHECK(signer.open(Channel::kControl, good_frames()).has_error());
    auto moved = std::move(signer);
    check_opening_refused(moved, good_frames(), ErrorCode::kProtocol, "seen before");
}

TEST_CASE("what was checked is admitted once", "[protocol][signer]") {
    auto signer = make_signer();
    const Signer::Check check = signer.check();
    auto first = check(Channel::kShell, good_frames());
    auto again = check(Channel::kShell, good_frames());
    REQUIRE(again.has_value());
    CHECK(again.value().message.has_value());
    const auto admitted = signer.admit(std::move(first));
    REQUIRE(admitted.has_value());
    CHECK(admitted.value().message.content_json() == kSignedContent);
    const auto repeated = signer.admit(std::move(again));
    REQUIRE(repeated.has_error());
    CHECK_THAT(repeated.error().message(), Contains("seen before"));
    auto frames = good_frames();
    frames[6] = "{}";
    const auto changed = signer.admit(check(Channel::kShell, frames));
    REQUIRE(changed.has_error());
    CHECK_THAT(changed.error().message(), Contains("does not match"));
    const Signer::Check orphan = make_signer().check();  // its Signer has gone
    CHECK(orphan(Channel::kShell, good_frames()).has_value());
}

TEST_CASE("the signature is verified before any JSON is parsed", "[protocol][signer]") {
    auto signer = make_signer();
    auto frames = good_frames();
    frames[3] = "not JSON";
    check_opening_refused(signer, frames, ErrorCode::kProtocol, "signature: does not match");
    const std::string signature = signer.sign("not JSON", "{}", "{}", kSignedContent);
    frames[2] = signature;
    check_opening_refused(signer, frames, ErrorCode::kProtocol, "header: not valid JSON");
    check_opening_refused(signer, frames, ErrorCode::kProtocol, "seen before");
}

TEST_CASE("a bad structure is refused", "[protocol][signer]") {
    auto signer = make_signer();
    const auto code = ErrorCode::kProtocol;
    check_opening_refused(signer, {}, code, "no <IDS|MSG>");
    check_opening_refused(signer, {""}, code, "no <IDS|MSG>");
    for (const char* wrong : {"", "<IDS|MSG", "<IDS|MSG>>", "<ids|msg>", " <IDS|MSG>"}) {
        auto frames = good_frames();
        frames[1] = wrong;
        check_opening_refused(signer, frames, code, "no <IDS|MSG>");
    }
    auto frames = good_frames();
    while (frames.size() > 2) {
        frames.pop_back();
        check_opening_refused(signer, frames, code, "fewer than five");
    }
    // An identity that spells the delimiter only hurts its owner.
    frames = good_frames();
    frames[0] = "<IDS|MSG>";
    check_opening_refused(signer, frames, code, "wrong length");
}

TEST_CASE("without a key nothing is signed or checked", "[protocol][signer]") {
    auto signer = make_signer("");
    CHECK(signer.sign(kSignedHeader, "{}", "{}", kSignedContent).empty());
    auto frames = good_frames();
    frames[2] = "";
    CHECK(signer.open(Channel::kShell, frames).has_value());
    CHECK(signer.open(Channel::kShell, frames).has_value());
    frames[3] = "{}";
    check_opening_refused(signer, frames, ErrorCode::kProtocol, "msg_id is missing");
}

TEST_CASE("an unknown scheme is refused", "[protocol][signer]") {
    for (const char* scheme :
         {"", "sha256", "hmac-sha1", "HMAC-SHA256", "hmac-sha256 ", "hmac-", "none"}) {
        CAPTURE(scheme);
        const auto signer = Signer::create(scheme, kKey);
        REQUIRE(signer.has_error());
        CHECK(signer.error().code() == ErrorCode::kInvalidArgument);
    }
}

TEST_CASE("limits::kZmqFramesMax bounds a multipart message", "[protocol][signer][limits]") {
    auto signer = make_signer();
    auto frames = good_frames();
    frames.resize(limits::kZmqFramesMax, "");
    // Verified and counted; then there are more buffers than a message may have.
    check_opening_refused(signer, frames, ErrorCode::kLimitExceeded, "buffers");
    frames.emplace_back("");
    check_opening_refused(signer, frames, ErrorCode::kLimitExceeded, "frames");

    frames = good_frames();
    frames.resize(7 + limits::kBuffersMax, "");
    CHECK(make_signer().open(Channel::kShell, frames).has_value());
}

TEST_CASE("limits::kFrameBytesMax bounds a multipart message", "[protocol][signer][limits]") {
    auto signer = make_signer();
    std::size_t others = 0;
    auto frames = good_frames();
    for (const auto frame : frames) {
        others += frame.size();
    }
    const std::string bytes(limits::kFrameBytesMax - others + 1, '\0');
    frames.emplace_back(bytes);
    check_opening_refused(signer, frames, ErrorCode::kLimitExceeded, "multipart: more than");
    frames.back().remove_prefix(1);
    CHECK(signer.open(Channel::kShell, frames).has_value());
}

TEST_CASE("limits::kReplayHistoryMax signatures are remembered", "[protocol][signer][limits]") {
    // MD5 and headers that are not JSON: verified and remembered, then cheaply refused.
    auto signer = make_signer(kKey, "hmac-md5");
    const auto open = [&](std::size_t number) {
        const std::string header = std::to_string(number);
        const std::string signature = signer.sign(header, "", "", "");
        const auto opened =
            signer.open(Channel::kShell, Frames{"<IDS|MSG>", signature, header, "", "", ""});
        return opened.has_error() ? opened.error().message() : std::string();
    };
    std::size_t replays = 0;
    for (std::size_t i = 0; i < limits::kReplayHistoryMax; ++i) {
        replays += open(i) == "signature: seen before" ? 1U : 0U;
    }
    REQUIRE(replays == 0);
    CHECK(open(0) == "signature: seen before");
    CHECK(open(limits::kReplayHistoryMax - 1) == "signature: seen before");
    // One more makes room by forgetting the oldest.
    CHECK(open(limits::kReplayHistoryMax) != "signature: seen before");
    CHECK(open(1) == "signature: seen before");
    CHECK(open(0) != "signature: seen before");
}
