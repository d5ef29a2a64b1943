// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/languages/named_environments.hpp"

#include "kernel-manager/languages/session_languages.hpp"
#include "tests/unit/environments/environments_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace cellkeep::session {
namespace {

KernelSpec default_python() {
    KernelSpec spec;
    spec.language = "python";
    spec.env = {
        "HOME=/workspace", "PATH=/opt/d/bin:/usr/bin", "CELLKEEP_ENVIRONMENT=/opt/d", "A=PATH=1"};
    spec.read_only = {{"/image/opt/d", "/opt/d"}};
    spec.images = {{"/image", "sha256:1", "erofs image"}};
    spec.environment = {"default", "sha256:1"};
    spec.forkable = true;
    return spec;
}

image::ImageInUse files_of(const std::string& name) {
    image::ImageInUse files;
    files.root = "/store/" + name;
    files.record.digest = "sha256:" + name;
    files.lease = std::make_shared<const UniqueFd>();
    return files;
}

environments::NamedRecord record_of(
    const std::string& name, const std::string& python = environments::kPythonVersion) {
    environments::NamedRecord record;
    record.name = name;
    record.python = python;
    return record;
}

KernelCatalog make_named_catalog() {
    KernelCatalog catalog;
    catalog.offer(default_python());
    KernelSpec bash = default_python();
    bash.language = "bash";
    bash.forkable = false;
    catalog.offer(bash);
    for (const char* name : {"geo", "nlp"}) {
        catalog.offer(make_named_spec(default_python(), record_of(name), files_of(name)));
    }
    catalog.withhold({"python3-old", "it is damaged", "Make it again."});
    return catalog;
}

bool lists(const std::vector<std::string>& values, const std::string& value) {
    return std::find(values.begin(), values.end(), value) != values.end();
}

TEST_CASE("a named environment is Python with its own files first", "[session][languages]") {
    const KernelSpec python = default_python();
    const image::ImageInUse files = files_of("geo");
    const KernelSpec spec = make_named_spec(python, record_of("geo"), files);
    CHECK(offered_by(spec) == "python3-geo");
    CHECK(spec.language == "python");
    CHECK(spec.environment.name == "geo");
    CHECK(spec.environment.digest == "sha256:geo");
    CHECK(spec.forkable);
    CHECK(lists(spec.env, "PATH=/opt/cellkeep/environments/geo/bin:/opt/d/bin:/usr/bin"));
    CHECK(lists(spec.env, "CELLKEEP_ENVIRONMENT=/opt/cellkeep/environments/geo"));
    CHECK(lists(spec.env, "A=PATH=1"));
    REQUIRE(spec.read_only.size() == 2);
    CHECK(spec.read_only[1].source == "/store/geo/environment");
    CHECK(spec.read_only[1].target == "/opt/cellkeep/environments/geo");
    REQUIRE(spec.images.size() == 2);
    CHECK(spec.images[1].root == "/store/geo");
    CHECK(spec.leases.back() == files.lease);
    CHECK(offered_by(python) == "python");
}

TEST_CASE("packages of Node.js are found by all of a session's languages", "[session][languages]") {
    environments::NamedRecord record = record_of("web");
    record.node.packages = {{"lodash", "4.17.21"}};
    KernelCatalog catalog = make_named_catalog();
    const KernelSpec web = make_named_spec(default_python(), record, files_of("web"));
    catalog.offer(web);
    const std::string modules = "/opt/cellkeep/environments/web/node/node_modules";
    const std::string path =
        "PATH=/opt/cellkeep/environments/web/bin:" + modules + "/.bin:/opt/d/bin:/usr/bin";
    CHECK(lists(web.env, path));
    CHECK(lists(web.env, "NODE_PATH=" + modules));
    const SessionLanguages within = combine_languages(catalog, web);
    const KernelSpec* const bash = within.catalog->find("bash");
    REQUIRE(bash != nullptr);
    CHECK(lists(bash->env, path));
    CHECK(lists(bash->env, "NODE_PATH=" + modules));
    const KernelSpec* const geo = catalog.find("python3-geo");
    REQUIRE(geo != nullptr);
    for (const std::string& variable : geo->env) {
        CHECK_FALSE(variable.starts_with("NODE_PATH="));
    }
}

TEST_CASE("an environment that brings its Python is started by that", "[session][languages]") {
    KernelSpec python = default_python();
    python.argv = {"/opt/cellkeep/bin/cellkeep-kernel-python"};
    python.env.emplace_back("CELLKEEP_PYTHONPATH=/opt/cellkeep/python");
    python.read_only.push_back({"/build/bin/cellkeep-kernel-python", python.argv[0]});
    const KernelSpec spec = make_named_spec(python, record_of("new", "3.13.0"), files_of("new"));
    CHECK(spec.display_name == "Python 3.13.0 (Cellkeep, new)");
    CHECK(
        spec.argv == std::vector<std::string>{
                         "/opt/cellkeep/environments/new/bin/python",
                         "-I",
                         "-B",
                         "-X",
                         "utf8",
                         "/opt/cellkeep/python/cellkeep_kernel/hosted.py",
                         "/opt/cellkeep/bin/cellkeep-host.abi3.so"});
    std::vector<std::string> shown;
    for (const sandbox::ReadOnlyPath& path : spec.read_only) {
        CHECK(path.executable);
        shown.push_back(path.source + " " + path.target);
    }
    // The module in the place of the program, which embeds another Python.
    CHECK(
        shown == std::vector<std::string>{
                     "/image/opt/d /opt/d",
                     "/build/bin/cellkeep-host.abi3.so /opt/cellkeep/bin/cellkeep-host.abi3.so",
                     "/store/new/environment /opt/cellkeep/environments/new",
                     "/store/new/interpreter /opt/cellkeep/interpreter"});
    CHECK(spec.forkable);
    CHECK(spec.debugger);
    CHECK(offered_by(spec) == "python3-new");
    const KernelSpec plain = make_named_spec(python, record_of("geo"), files_of("geo"));
    CHECK(plain.argv == python.argv);
    CHECK_FALSE(plain.debugger);
    CHECK(plain.display_name == "Python 3 (Cellkeep, geo)");
}

TEST_CASE("an environment of another Debian's Python is withheld", "[session][languages]") {
    test::EnvironmentsFixture fixture;
    (void)fixture.create("geo", "alpha==1.0\n");
    environments::NamedEnvironment geo = fixture.store.find("geo").value();
    CHECK(find_named_spec(fixture.store, default_python(), geo).has_value());
    geo.record.python = "3." + std::to_string(environments::kPythonMinor - 1);
    const auto spec = find_named_spec(fixture.store, default_python(), geo);
    REQUIRE(spec.has_error());
    CHECK(spec.error().code() == ErrorCode::kUnavailable);
    CHECK_THAT(
        spec.error().message(),
        Catch::Contains("Python " + geo.record.python) &&
            Catch::Contains(environments::kPythonVersion));
    CHECK_THAT(spec.error().hint(), Catch::Contains("cellkeep env update geo"));
}

TEST_CASE("a language and an environment name a kernel", "[session][languages]") {
    const KernelCatalog catalog = make_named_catalog();
    const auto kernel = [&](const std::string& language, const std::string& environment) {
        const auto chosen = choose_kernel(catalog, language, environment);
        return chosen.has_value() ? offered_by(*chosen.value()) : chosen.error().field();
    };
    CHECK(kernel("python", "default") == "python");
    CHECK(kernel("bash", "default") == "bash");
    CHECK(kernel("python", "geo") == "python3-geo");
    CHECK(kernel("python3-geo", "default") == "python3-geo");
    CHECK(kernel("python3-geo", "geo") == "python3-geo");
    CHECK(kernel("cobol", "default") == "language");
    CHECK(kernel("cobol", "geo") == "language");
    CHECK(kernel("python3-no", "default") == "language");
    CHECK(kernel("python", "no") == "environment");
    CHECK(kernel("python", "old") == "environment");
    CHECK(kernel("bash", "geo") == "environment");
    CHECK(kernel("python3-geo", "nlp") == "environment");
    CHECK(kernel("python3-geo", "no") == "environment");
    const auto damaged = choose_kernel(catalog, "python", "old");
    CHECK(damaged.error().code() == ErrorCode::kInvalidArgument);
    CHECK(damaged.error().message().find("it is damaged. Make it again.") != std::string::npos);
    CHECK(damaged.error().hint().find("default, geo, nlp.") != std::string::npos);
}

TEST_CASE("what keeps an environment out may be over", "[session][languages]") {
    KernelCatalog catalog = make_named_catalog();
    catalog.forget_withheld("python3-geo");
    REQUIRE(catalog.not_offered().size() == 1);
    catalog.forget_withheld("python3-old");
    CHECK(catalog.not_offered().empty());
    const auto unknown = choose_kernel(catalog, "python", "old");
    CHECK(unknown.error().message().find("it is damaged") == std::string::npos);
}

TEST_CASE("a foreign kernel of such a name is no environment", "[session][languages]") {
    KernelCatalog catalog = make_named_catalog();
    KernelSpec foreign = default_python();
    foreign.language = "python3-foo";
    catalog.offer(foreign);
    CHECK(choose_kernel(catalog, "python3-foo", "default").has_value());
    CHECK(choose_kernel(catalog, "python", "foo").error().field() == "environment");
}

TEST_CASE("a session shows the files of one named environment", "[session][languages]") {
    const KernelCatalog catalog = make_named_catalog();
    const auto targets = [](const SessionLanguages& languages) {
        std::vector<std::string> found;
        for (const sandbox::ReadOnlyPath& path : languages.read_only) {
            found.push_back(path.target);
        }
        return found;
    };
    const SessionLanguages geo = combine_languages(catalog, *catalog.find("python3-geo"));
    CHECK(geo.catalog->languages() == std::vector<std::string>{"bash", "python"});
    CHECK(geo.catalog->find("python")->environment.digest == "sha256:geo");
    CHECK(lists(targets(geo), "/opt/cellkeep/environments/geo"));
    CHECK_FALSE(lists(targets(geo), "/opt/cellkeep/environments/nlp"));
    CHECK(lists(
        geo.catalog->find("bash")->env,
        "PATH=/opt/cellkeep/environments/geo/bin:/opt/d/bin:/usr/bin"));
    const SessionLanguages plain = combine_languages(catalog, *catalog.find("python"));
    CHECK(plain.catalog->languages() == std::vector<std::string>{"bash", "python"});
    CHECK(plain.catalog->find("python")->environment.name == "default");
    CHECK(targets(plain) == std::vector<std::string>{"/opt/d"});
    CHECK(lists(plain.catalog->find("bash")->env, "PATH=/opt/d/bin:/usr/bin"));
    CHECK(plain.catalog->refuse("python3-nlp").hint() == "Create a session with environment nlp.");
}

}  // namespace
}  // namespace cellkeep::session
