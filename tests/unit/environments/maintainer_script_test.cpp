// SPDX-License-Identifier: Apache-2.0
#include "kernel-manager/environments/debian/maintainer_script.hpp"

#include "kernel-manager/environments/debian/system_alternatives.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <string>

namespace cellkeep::environments {
namespace {

ScriptReading read_body(const std::string& body) {
    return read_maintainer_script("#!/bin/sh\nset -e\n" + body);
}

bool has_more(const std::string& body) {
    return read_body(body).does_more;
}

TEST_CASE(
    "an alternative is what a script registers, over several lines", "[environments][debian]") {
    // As libblas3 of Debian 12 has it.
    const ScriptReading reading = read_body(
        "\nupdate-alternatives --install /usr/lib/x86_64-linux-gnu/libblas.so.3 \\\n"
        "                    libblas.so.3-x86_64-linux-gnu "
        "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3 10\n\n\n\nexit 0\n");
    REQUIRE(reading.alternatives.size() == 1);
    CHECK(
        reading.alternatives[0] == AlternativeOffer{
                                       {"/usr/lib/x86_64-linux-gnu/libblas.so.3",
                                        "libblas.so.3-x86_64-linux-gnu",
                                        "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3"},
                                       10,
                                       {}});
    CHECK_FALSE(reading.does_more);
}

TEST_CASE("a loop over words registers each, with its slaves", "[environments][debian]") {
    // As imagemagick-6.q16 of Debian 12 has it.
    const ScriptReading reading = read_body(R"(
if [ "$1" = "configure" ]
then
    for prog in compare convert; do
        # We first remove previous alternatives
    if dpkg --compare-versions "$2" lt-nl "8:6.9.2.10+dfsg-3"; then
        if  update-alternatives --list $prog > /dev/null 2>&1; then
        update-alternatives --remove-all $prog
        fi
    fi
    update-alternatives --install /usr/bin/$prog \
                        $prog /usr/bin/$prog-im6.q16 10000 \
                        --slave /usr/share/man/man1/$prog.1.gz \
                        $prog.1.gz /usr/share/man/man1/$prog-im6.q16.1.gz
    update-alternatives --install /usr/bin/$prog-im6 \
                        $prog-im6 /usr/bin/$prog-im6.q16 10000
        # We also remove previous
    done
fi
)");
    CHECK_FALSE(reading.does_more);
    REQUIRE(reading.alternatives.size() == 4);
    CHECK(
        reading.alternatives[2] == AlternativeOffer{
                                       {"/usr/bin/convert", "convert", "/usr/bin/convert-im6.q16"},
                                       10000,
                                       {{"/usr/share/man/man1/convert.1.gz",
                                         "convert.1.gz",
                                         "/usr/share/man/man1/convert-im6.q16.1.gz"}}});
    CHECK(reading.alternatives[3].master.name == "convert-im6");
}

TEST_CASE(
    "variables of literals are known, others make a script that does more",
    "[environments][debian]") {
    const ScriptReading known = read_body(
        "dir=/usr/lib/x\nname=\"tool\"\n"
        "update-alternatives --quiet --install /usr/bin/${name} $name \"$dir/tool\" 5 --slave "
        "/usr/bin/b 'b' /usr/lib/x/b\n");
    REQUIRE(known.alternatives.size() == 1);
    CHECK(known.alternatives[0].master.path == "/usr/lib/x/tool");
    CHECK(known.alternatives[0].slaves.size() == 1);
    CHECK_FALSE(known.does_more);
    for (const char* body :
         {"update-alternatives --install /usr/bin/x x $1 5",
          "update-alternatives --install /usr/bin/x x $(find /) 5",
          "update-alternatives --install /usr/bin/x x `find /` 5",
          "update-alternatives --install /usr/bin/x x /usr/bin/* 5",
          "update-alternatives --install /usr/bin/x x ${dir:-/usr} 5",
          "a=$1; update-alternatives --install /usr/bin/x x $a 5",
          "a=/x; a=$(pwd); update-alternatives --install /usr/bin/x x $a 5",
          "for a in *; do update-alternatives --install /usr/bin/x x $a 5; done",
          "for a in $list; do update-alternatives --install /usr/bin/x x $a 5; done",
          "update-alternatives --install /usr/bin/x x /usr/bin/y",
          "update-alternatives --install /usr/bin/x x /usr/bin/y high",
          "update-alternatives --install usr/bin/x x /usr/bin/y 5",
          "update-alternatives --install /usr/bin/x ../x /usr/bin/y 5",
          "update-alternatives --install /usr/bin/x x y 5",
          "update-alternatives --install /usr/bin/x x /usr/bin/y 5 --slave /usr/bin/z z",
          "update-alternatives --install /usr/bin/x x /usr/bin/y 5 more"}) {
        CAPTURE(body);
        const ScriptReading reading = read_body(body);
        CHECK(reading.alternatives.empty());
        CHECK(reading.does_more);
    }
}

TEST_CASE("what a session would not see is nothing more", "[environments][debian]") {
    for (const char* body :
         {"",
          "exit 0",
          "ldconfig",
          "if [ \"$1\" = configure ] && [ -x \"`command -v update-menus`\" ]; "
          "then\n\tupdate-menus\nfi",
          "case \"$1\" in\n  configure|abort-upgrade)\n    py3compile -p x\n  ;;\n  *)\n    echo "
          "\"what?\" >&2\n"
          "    exit 1\n  ;;\nesac",
          "if command -v py3compile >/dev/null 2>&1; then\n\tpy3compile -p python3-x:amd64\nfi",
          "pypy3compile -p x || true",
          "dpkg-maintscript-helper rm_conffile /etc/x 1.0 -- \"$@\"",
          "if [ -f /usr/lib/old ]; then rm -f /usr/lib/old; fi",
          "update-alternatives --auto x",
          "cat=1"}) {
        CAPTURE(body);
        CHECK_FALSE(has_more(body));
    }
}

TEST_CASE("what changes something is more, wherever it stands", "[environments][debian]") {
    for (const char* body :
         {"libgvc6-config-update -c",
          "if [ -x /usr/sbin/x-config ]; then\n\tx-config -c\nfi",
          "case \"$1\" in configure) adduser --system x ;; esac",
          "setup() {\n  mkdir /var/x\n}\n",
          "( cd /; mkdir x )",
          "true && mkdir x",
          "false || mkdir x",
          "echo x | tee /etc/x",
          "while read line; do mkdir $line; done < /list",
          "for x in a b; do mkdir $x; done",
          ". /usr/share/debconf/confmodule",
          "X=1 mkdir x",
          "/usr/bin/mkdir x",
          "$HELPER x",
          "cat <<EOF\nexit 0\nEOF\nmkdir x"}) {
        CAPTURE(body);
        CHECK(has_more(body));
    }
    CHECK(has_more("mkdir x <<EOF\nexit\nEOF\n"));
    CHECK_FALSE(has_more("echo <<EOF\nmkdir x\nEOF\n"));
    CHECK_FALSE(has_more("echo '\nmkdir x\n' \"\nmkdir y\n\" # mkdir z\n"));
}

TEST_CASE("who writes to a file does more, however little else", "[environments][debian]") {
    for (const char* body :
         {"echo x > /etc/foo",
          "echo x >/etc/foo",
          "echo x >> /etc/foo",
          "echo x >| /etc/foo",
          "echo x 1<> /etc/foo",
          "echo x >&/etc/foo",
          "echo x >&$place",
          "echo x >\"$place\"",
          "echo x > $(mktemp)",
          "echo x 2>&1 >/etc/foo",
          ">/etc/foo echo x",
          "printf x 2>/var/log/foo",
          ": > /etc/foo",
          "> /etc/foo",
          "echo x &> /etc/foo",
          "echo > /dev/nullx",
          "echo > dev/null",
          "{ echo a; echo b; } > /etc/foo",
          "( echo a ) > /etc/foo",
          "for x in a b; do echo $x; done > /etc/foo",
          "for x in a b; do echo $x > /etc/foo; done",
          "while true; do break; done > /etc/foo",
          "if true; then echo; fi >/etc/foo",
          "case x in x) echo ;; esac >/etc/foo",
          "configure() {\n  echo x\n} > /etc/foo",
          "echo x <<EOF >/etc/foo\nEOF\n"}) {
        CAPTURE(body);
        CHECK(has_more(body));
    }
    for (const char* body :
         {"echo x >&2",
          "echo x 1>&2",
          "echo x >& 2",
          "echo x 2>&1 >/dev/null",
          "echo x > /dev/null 2>&1 || true",
          "echo x >> \"/dev/null\"",
          "echo x >/dev/stderr",
          "echo x &>/dev/null",
          "echo x >&- y",
          "echo x 2>&-",
          "[ -e x ] < /etc/foo",
          "echo x <&3",
          "echo '> /etc/foo' \"> /etc/bar\" \\> /etc/foo # > /etc/foo",
          "echo <<EOF\necho > /etc/foo\nEOF\n",
          "echo <<-EOF\n\techo > /etc/foo\n\tEOF\n"}) {
        CAPTURE(body);
        CHECK_FALSE(has_more(body));
    }
}

TEST_CASE("what is no script of a shell is not understood", "[environments][debian]") {
    CHECK(read_maintainer_script("").does_more);
    CHECK(read_maintainer_script("exit 0\n").does_more);
    CHECK(read_maintainer_script("#!/usr/bin/perl\nexit 0\n").does_more);
    CHECK(read_maintainer_script("\x7f"
                                 "ELF")
              .does_more);
    CHECK(read_maintainer_script("#!/bin/sh\n" + std::string(kScriptBytesMax, '\n')).does_more);
    CHECK_FALSE(read_maintainer_script("#! /bin/sh -e\nexit 0\n").does_more);
    CHECK_FALSE(read_maintainer_script("#!/bin/bash\nexit 0").does_more);
}

TEST_CASE(
    "a script of nested loops, or of many alternatives, comes to an end",
    "[environments][debian]") {
    std::string loops;
    std::string ends;
    for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) {
        loops += std::string("for ") + name + " in 1 2 3 4 5 6 7 8 9; do\n";
        ends += "done\n";
    }
    CHECK(has_more(loops + "echo $a\n" + ends));
    const ScriptReading many =
        read_body(loops + "update-alternatives --install /b/$a$b$c$d $a$b$c$d /p 1\n" + ends);
    CHECK(many.alternatives.size() == kScriptAlternativesMax);
    for (const char* body :
         {"for",
          "for x",
          "for x in",
          "done",
          "fi",
          "case",
          "'",
          "\"",
          "`",
          "$(",
          "${",
          "<<",
          "\\"}) {
        CAPTURE(body);
        (void)read_body(body);  // Ignored: that it comes to an end counts.
    }
}

TEST_CASE("a script cannot make much of little", "[environments][debian]") {
    std::string doubled = "a=/usr/bin/xxxx\n";
    for (int i = 0; i < 64; ++i) {
        doubled += "a=$a$a\n";
    }
    const auto reading = read_body(doubled + "update-alternatives --install /usr/bin/v v $a 1\n");
    CHECK(reading.alternatives.empty());
    CHECK(reading.does_more);
    std::string loops;
    for (int i = 0; i < 100'000; ++i) {
        loops += "for a\n";
    }
    CHECK(has_more(loops));
    CHECK(has_more("update-alternatives --install /usr/../opt/x x /usr/bin/y 1\n"));
}

TEST_CASE(
    "of several offers that of the highest priority counts, if it is there",
    "[environments][debian]") {
    const auto offer = [](const std::string& name, const std::string& path, long priority) {
        return AlternativeOffer{{"/usr/bin/" + name, name, path}, priority, {}};
    };
    const std::vector<AlternativeOffer> offers{
        offer("blas", "/lib/reference", 10),
        offer("blas", "/lib/open", 100),
        offer("blas", "/lib/equal", 100),
        offer("blas", "/lib/absent", 200),
        offer("view", "/bin/absent", 1)};
    const std::set<std::string> there{"/lib/reference", "/lib/open", "/lib/equal"};
    const auto chosen =
        choose_alternatives(offers, [&](const std::string& path) { return there.contains(path); });
    REQUIRE(chosen.size() == 1);
    CHECK(chosen[0].master.path == "/lib/open");
}

}  // namespace
}  // namespace cellkeep::environments
