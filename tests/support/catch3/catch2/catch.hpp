// SPDX-License-Identifier: Apache-2.0
//
// The header of Catch2 version 2, of which the tests are written, made of those of version 3: where
// Debian has that version (cmake/CatchTests.cmake). What the tests do not use is missing.
#pragma once

#include <catch2/catch_message.hpp>
#include <catch2/catch_session.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/catch_tostring.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_adapters.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

// The header of version 2 brings these along.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace Catch {

namespace Matchers {

// Of strings alone, as in version 2. The one of version 3 is of ranges, and its header is not here.
inline StringContainsMatcher Contains(const std::string& part) {
    return ContainsSubstring(part);
}

}  // namespace Matchers

using Matchers::Contains;
using Matchers::EndsWith;
using Matchers::Matches;
using Matchers::StartsWith;

}  // namespace Catch
