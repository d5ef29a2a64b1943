// SPDX-License-Identifier: Apache-2.0
//
// What a client is answered whose request line and headers could not be read. Pure functions.
#pragma once

#include <boost/system/error_code.hpp>

#include <string>

namespace cellkeep::http {

struct HeadFailure {
    int status = 0;      // of the answer; 0: the client is gone, and there is no answer
    std::string detail;  // of its problem document
};

/// For an answer of 431 (RFC 6585, section 5).
std::string head_too_large();

/// `failure`: of Beast's parser or of the stream.
HeadFailure explain_head_failure(const boost::system::error_code& failure);

}  // namespace cellkeep::http
