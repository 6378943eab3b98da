#!/usr/bin/env python3
"""Writes JPEGs with a photograph's detail: 500 x 375 at about 110 KB, or of short side N at quality 90.

usage: photos.py [--short-side N] FILE...

The photograph of Debian's python-matplotlib-data where it is installed, with octaves of noise over it; else the noise alone.
"""

import argparse
import pathlib

import numpy
from PIL import Image

PHOTO = pathlib.Path("/usr/share/matplotlib/mpl-data/sample_data/grace_hopper.jpg")
SIZE, BYTES = (500, 375), 110_000


def noise(seed):
    random = numpy.random.default_rng(seed)
    total = numpy.zeros((SIZE[1], SIZE[0], 3))
    for octave in range(1, 10):
        small = random.normal(size=(2**octave, 2**octave, 3)).astype("f4")
        planes = [Image.fromarray(small[:, :, c]).resize(SIZE, Image.BICUBIC) for c in range(3)]
        total += numpy.stack([numpy.asarray(plane) for plane in planes], -1) * 0.72**octave
    gray = total.mean(-1, keepdims=True)
    total = 0.8 * gray + 0.3 * (total - gray)
    return (total - total.mean()) / total.std()


def picture(seed):
    if not PHOTO.exists():
        values = noise(seed) * 55 + 120
    else:
        with Image.open(PHOTO) as photo:
            values = numpy.asarray(photo.convert("RGB").resize(SIZE, box=(0, 60, 512, 444)), "f4") + noise(seed) * 22
    return Image.fromarray(values.clip(0, 255).astype("u1"))


def save(image, file, short_side):
    if short_side:
        size = (short_side * image.width // image.height, short_side)
        image.resize(size, Image.BILINEAR).save(file, quality=90)
        return
    for quality in range(80, 100):
        image.save(file, quality=quality)
        if pathlib.Path(file).stat().st_size >= BYTES:
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short-side", type=int, default=0)
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    for seed, file in enumerate(args.files):
        save(picture(seed), file, args.short_side)


if __name__ == "__main__":
    main()
