// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/session_languages.hpp"

#include "kernel-manager/environments/name.hpp"
#include "kernel-manager/languages/named_environments.hpp"
#include "kernel-manager/languages/shared_variables.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace cellkeep::session {

namespace {

using sandbox::ReadOnlyPath;

/// Whether a guest already sees the same file there. What the session's environment has over it
/// lies there for all languages.
bool is_there(const std::vector<ReadOnlyPath>& paths, const ReadOnlyPath& wanted) {
    return std::any_of(paths.begin(), paths.end(), [&](const ReadOnlyPath& path) {
        return path.target == wanted.target && path.source == wanted.source &&
               (path.executable || !wanted.executable);
    });
}

/// Whether the mount would hide another one.
bool covers_another(const std::vector<ReadOnlyPath>& paths, const ReadOnlyPath& wanted) {
    return std::any_of(paths.begin(), paths.end(), [&](const ReadOnlyPath& path) {
        return path.target == wanted.target || path.target.starts_with(wanted.target + "/");
    });
}

/// An error says why the language does not fit; `languages` is unchanged then.
Status add_paths(SessionLanguages& languages, const KernelSpec& spec) {
    std::vector<ReadOnlyPath> missing;
    for (const ReadOnlyPath& path : spec.read_only) {
        if (is_there(languages.read_only, path) || is_there(missing, path)) {
            continue;
        }
        if (covers_another(languages.read_only, path)) {
            return Error(
                ErrorCode::kConflict,
                "in this session another language has something else at " + path.target);
        }
        missing.push_back(path);
    }
    if (languages.read_only.size() + missing.size() > kCatalogPathsMax) {
        return Error(
            ErrorCode::kLimitExceeded,
            "with it this session would show more than " + std::to_string(kCatalogPathsMax) +
                " paths");
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
    return ok();
}

}  // namespace

/// Within its session a language has its own name.
KernelSpec within_session(KernelSpec main) {
    main.environment.name = environments::kDefaultEnvironment;
    return main;
}

SessionLanguages combine_languages(const KernelCatalog& offered, const KernelSpec& main) {
    SessionLanguages languages{main.read_only, main.images, nullptr};
    auto catalog = std::make_shared<KernelCatalog>();
    catalog->add(within_session(main));
    for (const NotOffered& absent : offered.not_offered()) {
        catalog->withhold(absent);
    }
    for (const std::string& name : offered.languages()) {
        if (name == main.language || name == offered_by(main)) {
            continue;
        }
        KernelSpec spec = *offered.find(name);
        if (is_named(spec)) {
            catalog->withhold(
                {name,
                 "a session has one environment of Python's",
                 "Create a session with environment " + spec.environment.name + "."});
            continue;
        }
        share_variables(main, spec);
        if (const Status fits = add_paths(languages, spec); fits.has_value()) {
            catalog->add(std::move(spec));
        } else {
            catalog->withhold(
                {name, fits.error().message(), "Create a session with language " + name + "."});
        }
    }
    languages.catalog = std::move(catalog);
    return languages;
}

}  // namespace cellkeep::session
