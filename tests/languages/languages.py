# SPDX-License-Identifier: Apache-2.0
"""Every language there is, in the order of the table in docs/languages.md."""

from language import Language
from snippets import bash, cpp, javascript, python, r, sql, typescript

LANGUAGES: dict[str, Language] = {
    each.LANGUAGE.name: each.LANGUAGE
    for each in (python, javascript, typescript, bash, sql, cpp, r)
}
