// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/jupyter/rest/rest_kernelspecs.hpp"

#include "kernel-manager/jupyter/rest/logos.hpp"
#include "kernel-manager/jupyter/rest/rest_model.hpp"
#include "tests/unit/jupyter/rest_fixture.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::jupyter::test {
namespace {

TEST_CASE("the Python kernel is python3, and python is taken for it", "[rest][kernelspecs]") {
    const std::vector<std::string> languages = {"python", "sql"};
    CHECK(kernel_name_of("python") == "python3");
    CHECK(kernel_name_of("sql") == "sql");
    for (const char* name : {"python3", "python", "Python3", "PYTHON"}) {
        CHECK(language_of(name, languages) == "python");
    }
    CHECK(language_of("sql", languages) == "sql");
    for (const char* name : {"", "python2", "python3 ", "ir", "sql3", "../python3"}) {
        CAPTURE(name);
        CHECK_FALSE(language_of(name, languages).has_value());
    }
    CHECK_FALSE(language_of("python3", {}).has_value());
}

TEST_CASE("the kernel of a named environment is Python by another name", "[rest][kernelspecs]") {
    session::KernelSpec spec;
    spec.language = "python";
    spec.environment.name = "geo";
    spec.display_name = "Python 3 (Cellkeep, geo)";
    const auto model = kernelspec_model(spec, "/");
    CHECK(model["name"] == "python3-geo");
    CHECK(model["spec"]["language"] == "python");
    CHECK(model["spec"]["argv"].back() == "python3-geo");
    CHECK(model["resources"]["logo-svg"] == "/kernelspecs/python3-geo/logo-svg.svg");
    CHECK(language_of("Python3-Geo", {"python", "python3-geo"}) == "python3-geo");
    CHECK_FALSE(language_of("python3-nlp", {"python", "python3-geo"}).has_value());
    session::SessionInfo info;
    info.language = "python";
    info.environment.name = "geo";
    CHECK(kernel_model(info)["name"] == "python3-geo");
    info.environment.name = "default";
    CHECK(kernel_model(info)["name"] == "python3");
}

TEST_CASE("kernelspecs have what a gateway client reads", "[rest][kernelspecs]") {
    RestFixture rest;
    const auto answer = rest.ask("GET", "/api/kernelspecs?1700000000000");
    CHECK(answer.status == 200);
    CHECK(answer.headers.get("Content-Type") == "application/json");
    CHECK(answer.json["default"] == "python3");
    CHECK(answer.json["kernelspecs"].size() == 2);
    const auto& python = answer.json["kernelspecs"]["python3"];
    CHECK(python["name"] == "python3");
    CHECK(python["spec"]["language"] == "python");
    CHECK(python["spec"]["interrupt_mode"] == "message");
    CHECK(python["spec"]["env"].is_object());
    CHECK(python["spec"]["kernel_protocol_version"] == "5.5");
    CHECK(python["spec"]["metadata"].is_object());
    CHECK(python["spec"]["argv"].is_array());
    CHECK(python["spec"]["display_name"] == "python (Cellkeep)");
    CHECK(python["resources"]["logo-64x64"] == "/kernelspecs/python3/logo-64x64.png");
    CHECK(python["resources"]["logo-svg"] == "/kernelspecs/python3/logo-svg.svg");
    CHECK(rest.ask("GET", "/api/kernelspecs?user=ada").json == answer.json);
}

TEST_CASE("one kernelspec is found by name, also by a gateway's address", "[rest][kernelspecs]") {
    RestFixture rest;
    for (const char* target :
         {"/api/kernelspecs/python3",
          "/api/kernelspecs/python",
          "/api/kernelspecs/python3?user=ada",
          "/api/kernelspecs?user=ada/python3",
          "/api/kernelspecs?user=ada%2Fpython3",
          "/api/kernelspecs?user=DOMAIN/ada/python3"}) {
        CAPTURE(target);
        const auto answer = rest.ask("GET", target);
        CHECK(answer.status == 200);
        CHECK(answer.json["name"] == "python3");
    }
    for (const char* target :
         {"/api/kernelspecs/python2",
          "/api/kernelspecs/x",
          "/api/kernelspecs?user=ada/x",
          "/api/kernelspecs?user=ada/",
          "/api/kernelspecs/python3/x"}) {
        CAPTURE(target);
        const auto answer = rest.ask("GET", target);
        CHECK(answer.status == 404);
        CHECK(answer.json["message"].is_string());
        CHECK(answer.json["reason"].is_string());
    }
}

TEST_CASE("addresses in answers have the base URL", "[rest][kernelspecs]") {
    RestConfig config;
    config.base_url = "/lab/";
    RestFixture rest(std::move(config));
    const auto python = rest.ask("GET", "/api/kernelspecs/python3").json;
    CHECK(python["resources"]["logo-64x64"] == "/lab/kernelspecs/python3/logo-64x64.png");
}

TEST_CASE("logos are pictures and need no token", "[rest][kernelspecs]") {
    RestFixture rest;
    const auto png =
        rest.ask("GET", "/kernelspecs/python3/logo-64x64.png", "", {{"Authorization", "token no"}});
    CHECK(png.status == 200);
    CHECK(png.headers.get("Content-Type") == "image/png");
    CHECK(png.headers.get("Cache-Control") == "public, max-age=3600");
    CHECK(png.text.substr(0, 8) == "\x89PNG\r\n\x1a\n");
    const auto svg = rest.ask("GET", "/kernelspecs/python/logo-svg.svg");
    CHECK(svg.headers.get("Content-Type") == "image/svg+xml");
    CHECK(svg.text.find("<svg") != std::string::npos);
    CHECK(rest.ask("GET", "/kernelspecs/sql/logo-32x32.png").status == 200);
    for (const char* target :
         {"/kernelspecs/python3/kernel.json",
          "/kernelspecs/python3/logo",
          "/kernelspecs/nosuch/logo-64x64.png",
          "/kernelspecs/python3",
          "/kernelspecs/python3/a/logo-64x64.png"}) {
        CAPTURE(target);
        CHECK(rest.ask("GET", target).status == 404);
    }
    CHECK(find_logo("logo-64x64.png") != nullptr);
    CHECK(find_logo("") == nullptr);
}

}  // namespace
}  // namespace cellkeep::jupyter::test
