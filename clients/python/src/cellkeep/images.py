# SPDX-License-Identifier: Apache-2.0
"""Pictures that code showed."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: Image types in the order in which one is chosen when an output offers several.
IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml")
_TEXT_IMAGES = ("image/svg+xml",)


@dataclass(frozen=True)
class Image:
    """A picture that the code showed."""

    media_type: str
    data: bytes = field(repr=False)

    @property
    def extension(self) -> str:
        """The usual file name extension of its type.

        >>> Image("image/svg+xml", b"<svg/>").extension
        '.svg'
        """
        return "." + self.media_type.partition("/")[2].partition("+")[0].replace("jpeg", "jpg")

    def save(self, path: str | Path) -> Path:
        """Writes the picture and gives its path."""
        target = Path(path)
        target.write_bytes(self.data)
        return target

    def _repr_mimebundle_(self, **_: object) -> dict[str, Any]:
        if self.media_type in _TEXT_IMAGES:
            return {self.media_type: self.data.decode()}
        return {self.media_type: base64.b64encode(self.data).decode()}


def images_of(bundle: Mapping[str, Any]) -> Iterator[Image]:
    """The picture of a bundle of media types: the first of IMAGE_TYPES that is there."""
    for media_type in IMAGE_TYPES:
        if media_type in bundle:
            text = bundle[media_type]
            text = text if isinstance(text, str) else "".join(text)
            data = text.encode() if media_type in _TEXT_IMAGES else base64.b64decode(text)
            yield Image(media_type, data)
            return
