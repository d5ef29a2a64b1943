// SPDX-License-Identifier: Apache-2.0
//
// How a zygote of a language is made: its program, its environment, and the policy of its sandbox.
#pragma once

#include "kernel-manager/kernel/kernel_spec.hpp"
#include "kernel-manager/languages/session_languages.hpp"
#include "kernel-manager/service/service_config.hpp"
#include "kernel-manager/warm/warm_start.hpp"
#include "sandbox/server/zygote.hpp"

#include <cstdint>
#include <memory>

namespace cellkeep::session {

/// Ids beyond those of the most sessions that may live: for sessions that have ended but are not
/// gone yet. A zygote itself has the id before the first session's.
inline constexpr std::uint32_t kZygoteIdsSpare = 64;

enum class Libraries { kImported, kNone };

/// Everything about it but its descriptors. kNone: it serves until the full one is made.
sandbox::ZygoteSpec describe_zygote(
    const KernelSpec& spec,
    Libraries libraries,
    const SessionLanguages& languages,
    const ServiceConfig& config);

/// Makes one, on whatever thread calls it. What the zygote wrote to stderr is in the error.
WarmStart::Make zygote_maker(
    const KernelSpec& spec,
    Libraries libraries,
    const SessionLanguages& languages,
    std::shared_ptr<const ServiceConfig> config);

}  // namespace cellkeep::session
