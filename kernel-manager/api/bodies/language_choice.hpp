// SPDX-License-Identifier: Apache-2.0
//
// The field "language" of a body: one of those that are offered, or an error that names them and
// says what gives the one that is missing. Pure functions.
#pragma once

#include "kernel-manager/api/bodies/object_reader.hpp"
#include "kernel-manager/session/session.hpp"

#include <optional>
#include <string>

namespace cellkeep::api {

struct Offer;

/// One that the session offers. Nothing if the body does not say; a wrong one is also an error.
std::optional<std::string> read_language(
    ObjectReader& reader, const session::OfferedLanguages& running);
/// One that the server offers, likewise.
std::optional<std::string> read_language(ObjectReader& reader, const Offer& offer);

}  // namespace cellkeep::api
