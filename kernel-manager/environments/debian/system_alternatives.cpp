// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/system_alternatives.hpp"

#include <filesystem>
#include <map>
#include <system_error>

namespace cellkeep::environments {

namespace fs = std::filesystem;

namespace {

constexpr const char* kAlternatives = "/etc/alternatives/";

/// What is at /bin or /lib is listed beneath /usr.
std::string listed_path(const std::string& path) {
    const std::string place = place_in_system(std::string_view(path).substr(1));
    return place.empty() ? path : "/" + place;
}

bool is_of_image(const AlternativeLink& one, const std::set<std::string, std::less<>>& files) {
    std::error_code error;
    const fs::path chosen = fs::read_symlink(kAlternatives + one.name, error);
    return files.contains(listed_path(one.link)) ||
           (!error && chosen.is_absolute() && files.contains(listed_path(chosen.string())));
}

}  // namespace

std::vector<AlternativeOffer> choose_alternatives(
    const std::vector<AlternativeOffer>& offers,
    const std::function<bool(const std::string& path)>& is_there) {
    std::map<std::string, AlternativeOffer> best;
    for (const AlternativeOffer& offer : offers) {
        if (!is_there(offer.master.path)) {
            continue;
        }
        const auto [known, added] = best.emplace(offer.master.name, offer);
        if (!added && known->second.priority < offer.priority) {
            known->second = offer;
        }
    }
    std::vector<AlternativeOffer> chosen;
    chosen.reserve(best.size());
    for (auto& [name, offer] : best) {
        chosen.push_back(std::move(offer));
    }
    return chosen;
}

Status link_alternatives(
    const std::vector<AlternativeOffer>& offers,
    const std::set<std::string, std::less<>>& image_files,
    SystemTree& tree) {
    const auto is_there = [&tree](const std::string& path) { return tree.holds(path); };
    for (const AlternativeOffer& offer : choose_alternatives(offers, is_there)) {
        if (is_of_image(offer.master, image_files)) {
            continue;
        }
        std::vector<AlternativeLink> links = offer.slaves;
        links.insert(links.begin(), offer.master);
        for (const AlternativeLink& one : links) {
            // Manual pages of a program are left out, and slaves are theirs for the most part.
            if (is_there(one.path) && !image_files.contains(listed_path(one.link))) {
                BOOST_OUTCOME_TRY(tree.add_link(one.link, kAlternatives + one.name));
                BOOST_OUTCOME_TRY(tree.add_link(kAlternatives + one.name, one.path));
            }
        }
    }
    return ok();
}

}  // namespace cellkeep::environments
