// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/execution/artifacts/media_type.hpp"

#include <catch2/catch.hpp>

namespace cellkeep::session {
namespace {

TEST_CASE("a media type goes by the last extension, in either case", "[media_type]") {
    CHECK(media_type_of("a.csv") == "text/csv");
    CHECK(media_type_of("d.e/plot.PNG") == "image/png");
    CHECK(media_type_of("data.parquet") == "application/vnd.apache.parquet");
    CHECK(media_type_of("n.ipynb") == "application/x-ipynb+json");
    CHECK(media_type_of("x.tar.gz") == "application/gzip");
    CHECK(media_type_of("r.html") == "text/html");
    CHECK(media_type_of("s.svg") == "image/svg+xml");
    CHECK(media_type_of("t.json") == "application/json");
    CHECK(media_type_of("app.ts") == "text/x-typescript");
    CHECK(media_type_of("c.yml") == "application/yaml");
    CHECK(
        media_type_of("s.xlsx") ==
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet");
}

TEST_CASE("what is not known is bytes", "[media_type]") {
    for (const char* path :
         {"",
          "noextension",
          ".png",
          "d/.csv",
          "a.",
          "d.csv/x",
          "a.unheardof",
          "a.\xff",
          "a.p\ng"}) {
        CAPTURE(path);
        CHECK(media_type_of(path) == "application/octet-stream");
    }
}

}  // namespace
}  // namespace cellkeep::session
