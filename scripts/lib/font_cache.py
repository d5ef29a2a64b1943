# SPDX-License-Identifier: Apache-2.0
"""Writes matplotlib's font list into the folder named on the command line.

Without it the first figure of every session would search the sandbox for fonts. The list holds
only the fonts that come with matplotlib (their paths are stored relative to the package, so the
list is right wherever the environment is mounted): fonts of this machine are not in the sandbox.
"""

import sys
from pathlib import Path

from matplotlib import font_manager


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    find_fonts = font_manager.findSystemFonts
    font_manager.findSystemFonts = lambda fontpaths=None, fontext="ttf": (
        find_fonts(fontpaths, fontext) if fontpaths else []
    )
    fonts = font_manager.FontManager()
    if not any(font.name == "DejaVu Sans" for font in fonts.ttflist):
        sys.exit("matplotlib's own fonts were not found")
    font_manager.json_dump(fonts, folder / f"fontlist-v{fonts.__version__}.json")


if __name__ == "__main__":
    main()
