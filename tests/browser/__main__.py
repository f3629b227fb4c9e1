"""`python -m tests.browser PAGE.html docs/report.png`: the picture of a page that the docs begin with, small."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

from tests.browser.chromium import look

WIDTH, HEIGHT = 1150, 1990
SHOWN, COLOURS = 800, 200
"""Width in the README, and colours of the palette."""


def main(page, picture):
    """Take it, and make it small."""
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder) / "page.png"
        look(Path(page), shot, WIDTH, HEIGHT)
        with Image.open(shot) as seen:
            small = seen.convert("RGB").resize((SHOWN, HEIGHT * SHOWN // WIDTH), Image.Resampling.LANCZOS)
            small.quantize(COLOURS, dither=Image.Dither.NONE).save(picture, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
