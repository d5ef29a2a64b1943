// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/cli/env/environments.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <string>

namespace cellkeep::cli {
namespace {

const std::string kDebians = environments::kPythonVersion;

environments::NamedEnvironment make_environment(const std::string& name) {
    environments::NamedEnvironment one;
    one.record.name = name;
    one.record.digest = "sha256:" + std::string(64, 'a');
    one.record.python = kDebians;
    one.record.index = "PyPI";
    one.record.bytes = 3UL << 20U;
    one.record.created_at = "2026-11-26T10:00:00.123Z";
    one.record.requirements = {"alpha>=1"};
    one.record.packages = {{"alpha", "1.0"}, {"beta", "2.0"}};
    one.record.built = {"alpha"};
    one.image = image::ImageRecord();
    return one;
}

TEST_CASE("environments are a table and JSON", "[cli][environments]") {
    auto used = make_environment("geo");
    used.in_use = true;
    auto damaged = make_environment("nlp");
    damaged.image.reset();
    auto other = make_environment("a");
    other.record.python = "3.12.1";
    CHECK(
        env_table({used, damaged, other}) ==
        "NAME  KERNEL       PYTHON  PACKAGES  MIB  STATE       MADE\n"
        "geo   python3-geo  " +
            kDebians +
            "    2         3    in use      2026-11-26T10:00:00\n"
            "nlp   python3-nlp  " +
            kDebians +
            "    2         3    damaged     2026-11-26T10:00:00\n"
            "a     python3-a    3.12.1  2         3    not in use  2026-11-26T10:00:00\n");
    const auto listed = nlohmann::json::parse(env_json(std::vector{used, damaged}));
    REQUIRE(listed.size() == 2);
    CHECK(listed[0]["kernel"] == "python3-geo");
    CHECK(listed[0]["in_use"] == true);
    CHECK(listed[0]["damaged"] == false);
    CHECK(listed[0]["packages"]["beta"] == "2.0");
    CHECK(listed[0]["built_from_source"] == nlohmann::json::array({"alpha"}));
    CHECK(listed[1]["damaged"] == true);
    CHECK(nlohmann::json::parse(env_json(used)) == listed[0]);
    CHECK(env_json(std::vector<environments::NamedEnvironment>()) == "[]\n");
}

TEST_CASE(
    "an environment is shown with what was asked for and what is there", "[cli][environments]") {
    const std::string text = env_text(make_environment("geo"));
    for (const char* part :
         {"kernel:  python3-geo\n",
          "index:   PyPI\n",
          "  alpha>=1\n",
          "  alpha 1.0 (built from source)\n",
          "  beta 2.0\n"}) {
        CAPTURE(part);
        CHECK(text.find(part) != std::string::npos);
    }
    CHECK(text.find("besides those of the default environment") != std::string::npos);
    auto other = make_environment("geo");
    other.record.python = "3.12.1";
    CHECK(env_text(other).find("python:  3.12.1\n") != std::string::npos);
    CHECK(env_text(other).find("default environment") == std::string::npos);
}

TEST_CASE("an environment is exported as requirements", "[cli][environments]") {
    CHECK(
        env_requirements(make_environment("geo").record) ==
        "# The environment geo, Python " + kDebians +
            ", made of PyPI at 2026-11-26T10:00:00.123Z\n"
            "# built from source: alpha\n"
            "alpha==1.0\n"
            "beta==2.0\n");
}

TEST_CASE("packages of Debian are shown, counted and exported", "[cli][environments]") {
    auto one = make_environment("geo");
    one.record.debian = {
        {"graphviz"},
        {{"graphviz", "2.42.2-7"}, {"libgvc6", "2.42.2-7"}},
        {"libgvc6"},
        "debian bookworm",
        {}};
    CHECK_THAT(
        env_text(one),
        Catch::EndsWith("asked for, of debian bookworm:\n"
                        "  graphviz\n"
                        "packages of Debian (besides those of every session):\n"
                        "  graphviz 2.42.2-7\n"
                        "  libgvc6 2.42.2-7 (its setup script was not run)\n"));
    CHECK_THAT(env_table({one}), Catch::Contains("geo   python3-geo  " + kDebians + "    4  "));
    CHECK_THAT(
        env_requirements(one.record), Catch::Contains("# of debian bookworm: libgvc6=2.42.2-7\n"));
    const auto model = nlohmann::json::parse(env_json(one));
    CHECK(model["debian_packages"]["graphviz"] == "2.42.2-7");
    CHECK(model["debian_scripts_not_run"] == nlohmann::json::array({"libgvc6"}));
    CHECK(model["debian_release"] == "debian bookworm");
    one.record.debian.image_packages = "sha256:12";
    CHECK_THAT(
        env_text(one),
        Catch::Contains("packages of Debian (besides those of every session, sha256:12):\n"));
    CHECK(nlohmann::json::parse(env_json(one))["debian_image_packages"] == "sha256:12");
    CHECK(env_text(make_environment("geo")).find("Debian") == std::string::npos);
}

TEST_CASE("of a lock the packages are shown, and not their hashes", "[cli][environments]") {
    auto one = make_environment("geo");
    one.record.locked = true;
    one.record.requirements = {"alpha==1.0 --hash=sha256:1234"};
    CHECK_THAT(env_text(one), Catch::Matchers::Contains("asked for, by a lock:\n  alpha==1.0\n"));
    CHECK(nlohmann::json::parse(env_json(one))["locked"] == true);
}

TEST_CASE("a Python that is asked for wins over that of a conda file", "[cli][environments]") {
    EnvCreate command;
    CHECK(chosen_python(command, std::nullopt) == environments::kPythonVersion);
    CHECK(chosen_python(command, "3.12") == "3.12");
    command.python = "/opt/own/python";
    CHECK(chosen_python(command, "3.12") == "/opt/own/python");
    CHECK(chosen_python(command, std::nullopt) == "/opt/own/python");
}

EnvUpdate update_of(const std::string& name) {
    EnvUpdate update;
    update.name = name;
    return update;
}

TEST_CASE("an update asks for what was asked for", "[cli][environments]") {
    auto record = make_environment("geo").record;
    const auto same = completed(update_of("geo"), record);
    CHECK(same.index == "");
    CHECK(same.python == kDebians);
    record.python = record.asked_python = "3.9";  // Debian's, before the machine had a newer one
    CHECK(completed(update_of("geo"), record).python == kDebians);
    record.index = "https://packages.example/simple";
    record.python = "3.12.1";
    record.asked_python = "/opt/own/python";
    CHECK(completed(update_of("geo"), record).index == record.index);
    CHECK(completed(update_of("geo"), record).python == "/opt/own/python");
    EnvUpdate changed = update_of("geo");
    changed.index = "https://me:secret@x.example";
    changed.python = "/opt/python";
    const auto other = completed(changed, record);
    CHECK(other.index == "https://me:secret@x.example");
    CHECK(other.python == "/opt/python");
}

}  // namespace
}  // namespace cellkeep::cli
