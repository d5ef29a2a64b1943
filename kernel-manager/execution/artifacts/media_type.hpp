// SPDX-License-Identifier: Apache-2.0
//
// The media type of a file by its name. The table is Debian's media-types package as it was when
// the program was built, and kernel-manager/execution/artifacts/media_types.txt where that says
// nothing or means something else. Contents are never looked at.
#pragma once

#include <string_view>

namespace cellkeep::session {

/// "application/octet-stream" for what is not known.
std::string_view media_type_of(std::string_view path);

}  // namespace cellkeep::session
