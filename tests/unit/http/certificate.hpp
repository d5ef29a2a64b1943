// SPDX-License-Identifier: Apache-2.0
//
// Throw-away certificates for tests.
#pragma once

#include <string>

namespace cellkeep::http::test {

struct CertificateFiles {
    std::string certificate;
    std::string key;  // mode 0600
};

/// A new P-256 key and its certificate for "localhost", in files of that directory.
CertificateFiles make_certificate(const std::string& directory, const std::string& name);
/// The key of a pair again, behind a passphrase.
std::string encrypt_key(const std::string& key_path);

}  // namespace cellkeep::http::test
