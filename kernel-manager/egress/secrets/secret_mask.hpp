// SPDX-License-Identifier: Apache-2.0
//
// Overwrites secrets in what a server says. Knows what of a secret must not come back, and finds it
// in a stream in one pass, however the stream is cut. Never: finds a value that the server has
// encoded. One thread.
#pragma once

#include "kernel-manager/egress/message/message_reader.hpp"
#include "kernel-manager/egress/secrets/secret.hpp"
#include "kernel-manager/egress/target.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cellkeep::egress {

/// The value, without the prefix of the secrets file or one scheme in front ("Bearer …", "Basic
/// …"), which are no secret; of a Cookie besides the value of each. A part of less than four
/// characters, too usual a text to be overwritten everywhere, counts only as a part of the whole.
std::vector<std::string> sensitive_parts(const Secret& secret);

/// As many asterisks for each value, wherever it appears as it stands; values may overlap. Holds
/// back at most the longest value's length less one.
class SecretMask {
 public:
    /// Empty values are ignored.
    explicit SecretMask(const std::vector<std::string>& values);
    /// Of every granted secret of this host: a server may repeat what an earlier request brought.
    SecretMask(const std::vector<Secret>& granted, const Authority& target);

    std::string feed(std::string_view bytes);
    std::string finish();
    /// Of a text that is whole; what is held back stays as it is.
    std::string mask(std::string_view text) const;
    /// The reason and each field.
    MessageHead mask(MessageHead head) const;

 private:
    /// One value, looked for as Knuth, Morris and Pratt do it: never a step back in the text.
    struct Pattern {
        std::string value;
        std::vector<std::size_t> fallback;  // per length matched: the longest shorter one
        std::size_t matched = 0;
        std::size_t covered = 0;  // end, in held_, of what its matches have overwritten

        explicit Pattern(std::string text);
        bool advance(char c);  // true: the value ends here
    };
    void add(std::string value);

    std::vector<Pattern> patterns_;
    std::string held_;
};

}  // namespace cellkeep::egress
