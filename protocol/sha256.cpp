// SPDX-License-Identifier: Apache-2.0
#include "protocol/sha256.hpp"

#include "protocol/support/syscall.hpp"

#include <openssl/evp.h>

#include <array>

namespace cellkeep::protocol {

namespace {

struct FreeContext {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

struct Sha256::State {
    std::unique_ptr<EVP_MD_CTX, FreeContext> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
    // Fails only without memory or without SHA-256, and then nothing else here works either.
    CELLKEEP_CHECK(
        state_->context != nullptr &&
        EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
    CELLKEEP_CHECK(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
}

void Sha256::update_field(std::string_view bytes) {
    std::array<char, 8> length{};
    for (std::size_t i = 0; i < length.size(); ++i) {
        length[i] = static_cast<char>(static_cast<std::uint64_t>(bytes.size()) >> 8U * i & 0xFFU);
    }
    update({length.data(), length.size()});
    update(bytes);
}

std::string Sha256::finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int length = 0;
    CELLKEEP_CHECK(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &length) == 1);
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string hex;
    for (unsigned int i = 0; i < length; ++i) {
        hex += kDigits[digest.at(i) >> 4U];
        hex += kDigits[digest.at(i) & 0xFU];
    }
    return hex;
}

std::string sha256_hex(std::string_view bytes) {
    Sha256 digest;
    digest.update(bytes);
    return digest.finish();
}

}  // namespace cellkeep::protocol
