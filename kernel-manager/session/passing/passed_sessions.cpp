// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/session/passing/passed_sessions.hpp"

#include "kernel-manager/session/passing/passed_specs.hpp"
#include "sandbox/server/assembly.hpp"

#include <algorithm>
#include <utility>

namespace cellkeep::session {

namespace {

template <typename T>
std::size_t place_of(std::vector<T>& all, const T& one) {
    const auto found = std::find(all.begin(), all.end(), one);
    if (found != all.end()) {
        return static_cast<std::size_t>(found - all.begin());
    }
    all.push_back(one);
    return all.size() - 1;
}

}  // namespace

std::size_t SharedParts::add(const std::shared_ptr<sandbox::Zygote>& zygote) {
    return place_of(zygotes_, zygote);
}

std::size_t SharedParts::add(const std::shared_ptr<const UniqueFd>& lease) {
    return place_of(leases_, lease);
}

std::size_t SharedParts::add(const std::shared_ptr<const KernelCatalog>& catalog) {
    const std::size_t place = place_of(catalogs_, catalog);
    if (place == written_catalogs_.size()) {
        written_catalogs_.push_back(write_catalog(*catalog, *this));
    }
    return place;
}

std::size_t SharedParts::passed_bytes() const {
    std::size_t bytes = 0;
    for (const nlohmann::json& catalog : written_catalogs_) {
        bytes += nlohmann::json::to_cbor(catalog).size();
    }
    return bytes;
}

void SharedParts::move_to(PassedSessions& passed) {
    for (const auto& zygote : std::exchange(zygotes_, {})) {
        passed.zygotes.push_back(zygote->pass_on());
    }
    passed.leases = std::move(leases_);
    passed.catalogs = std::move(written_catalogs_);
    passed.cgroups_named = sandbox::sessions_named();
}

}  // namespace cellkeep::session
