// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/session_languages.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace cellkeep::session {

namespace {

using sandbox::ReadOnlyPath;

/// There already, as far as a guest can tell.
bool is_there(const std::vector<ReadOnlyPath>& paths, const ReadOnlyPath& wanted) {
    return std::any_of(paths.begin(), paths.end(), [&](const ReadOnlyPath& path) {
        return path.target == wanted.target && path.source == wanted.source &&
               (path.executable || !wanted.executable);
    });
}

/// Would be mounted over something else.
bool covers_another(const std::vector<ReadOnlyPath>& paths, const ReadOnlyPath& wanted) {
    return std::any_of(paths.begin(), paths.end(), [&](const ReadOnlyPath& path) {
        return path.target == wanted.target || path.target.starts_with(wanted.target + "/");
    });
}

/// False, and nothing changed, if it does not fit.
bool add_paths(SessionLanguages& languages, const KernelSpec& spec) {
    std::vector<ReadOnlyPath> missing;
    for (const ReadOnlyPath& path : spec.read_only) {
        if (is_there(languages.read_only, path) || is_there(missing, path)) {
            continue;
        }
        if (covers_another(languages.read_only, path)) {
            return false;
        }
        missing.push_back(path);
    }
    languages.read_only.insert(languages.read_only.end(), missing.begin(), missing.end());
    for (const sandbox::PrivateImage& image : spec.images) {
        const auto& known = languages.images;
        if (std::none_of(known.begin(), known.end(), [&](const sandbox::PrivateImage& one) {
                return one.root == image.root;
            })) {
            languages.images.push_back(image);
        }
    }
    return true;
}

}  // namespace

SessionLanguages combine_languages(const KernelCatalog& offered, const KernelSpec& main) {
    SessionLanguages languages{main.read_only, main.images, nullptr};
    auto catalog = std::make_shared<KernelCatalog>();
    catalog->add(main);
    for (const std::string& name : offered.languages()) {
        const KernelSpec& spec = *offered.find(name);
        if (name != main.language && add_paths(languages, spec)) {
            catalog->add(spec);
        }
    }
    languages.catalog = std::move(catalog);
    return languages;
}

}  // namespace cellkeep::session
