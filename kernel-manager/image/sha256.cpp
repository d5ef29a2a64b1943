// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/image/sha256.hpp"

#include <openssl/evp.h>

#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

namespace cellkeep::image {

struct Sha256::State {
    std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{
        EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
    // Without memory or without SHA-256 in libcrypto nothing here can go on.
    CELLKEEP_CHECK(state_->context != nullptr);
    CELLKEEP_CHECK(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1);
}

Sha256::Sha256(Sha256&& other) noexcept = default;
Sha256& Sha256::operator=(Sha256&& other) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::update(std::string_view bytes) {
    CELLKEEP_CHECK(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1);
}

void Sha256::update_field(std::string_view bytes) {
    update(std::to_string(bytes.size()));
    update(":");
    update(bytes);
}

std::string Sha256::finish() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    CELLKEEP_CHECK(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size) == 1);
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    for (unsigned i = 0; i < size; ++i) {
        text += kDigits[digest[i] >> 4U];
        text += kDigits[digest[i] & 15U];
    }
    return text;
}

Result<std::string> sha256_of_file(int fd) {
    constexpr std::size_t kPieceBytes = 1ULL << 20U;
    std::vector<char> piece(kPieceBytes);
    Sha256 digest;
    off_t at = 0;
    while (true) {
        const ssize_t got = ::pread(fd, piece.data(), piece.size(), at);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            return Error::from_errno(errno, "read(image)");
        }
        if (got == 0) {
            return digest.finish();
        }
        digest.update({piece.data(), static_cast<std::size_t>(got)});
        at += got;
    }
}

}  // namespace cellkeep::image
