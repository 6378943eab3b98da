"""Pillow's and torchvision's side of python_images_test.cpp.

usage: image_peer.py FOLDER

Writes image files into FOLDER, and beside them what Pillow and torchvision make of them. Each line
of FOLDER/cases.txt is one case: KIND FILE EXPECTED TOLERANCE NUMBER...; EXPECTED holds bytes, or
floats for "floats".
"""

import pathlib
import sys

import numpy
import torch
import torchvision
from PIL import Image, ImageOps
from torchvision import transforms

PHOTO = pathlib.Path("/usr/share/matplotlib/mpl-data/sample_data/grace_hopper.jpg")
MASK32, MASK64 = 2**32 - 1, 2**64 - 1


class Draws:
    """feed::Draws: Philox 4x32-10 under the key of a sample."""

    def __init__(self, seed, epoch, index):
        self.key = (seed & MASK32, seed >> 32)
        self.counter = [index & MASK32, index >> 32, epoch & MASK32, 0]
        self.block = []

    def bits32(self):
        if not self.block:
            c, k = list(self.counter), self.key
            for _ in range(10):
                a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
                c = [(b >> 32) ^ c[1] ^ k[0], b & MASK32, (a >> 32) ^ c[3] ^ k[1], a & MASK32]
                k = ((k[0] + 0x9E3779B9) & MASK32, (k[1] + 0xBB67AE85) & MASK32)
            self.counter[3] += 1
            self.block = c
        return self.block.pop(0)

    def bits64(self):
        upper = self.bits32()
        return upper << 32 | self.bits32()

    def uniform(self):
        return (self.bits64() >> 11) * 2.0**-53

    def below(self, bound):
        surplus = (2**64 - bound) % bound
        value = self.bits64()
        while value < surplus:
            value = self.bits64()
        return value % bound


class DrawnBy:
    """torch's generators that torchvision calls, on the numbers of one Draws."""

    def __init__(self, draws):
        self.draws = draws

    def __enter__(self):
        self.kept = torch.Tensor.uniform_, torch.randint, torch.rand, torch.randperm
        torch.Tensor.uniform_ = lambda t, low=0, high=1: t.fill_(low + (high - low) * self.draws.uniform())
        torch.randint = self.randint
        torch.rand = lambda size: torch.full((size,), self.draws.uniform(), dtype=torch.float64)
        torch.randperm = self.randperm

    def randint(self, *bounds, size=None):
        bounds, size = (bounds, size) if size is not None else (bounds[:-1], bounds[-1])
        low, high = bounds if len(bounds) == 2 else (0, bounds[0])
        return torch.full(size, low + self.draws.below(high - low))

    def randperm(self, count):
        order = list(range(count))
        for i in range(count, 1, -1):
            j = self.draws.below(i)
            order[i - 1], order[j] = order[j], order[i - 1]
        return torch.tensor(order)

    def __exit__(self, *unused):
        torch.Tensor.uniform_, torch.randint, torch.rand, torch.randperm = self.kept


def noise(width, height, seed):
    """Octaves of noise: as much detail as a photograph has."""
    random = numpy.random.default_rng(seed)
    total = numpy.zeros((height, width, 3))
    for octave in range(1, 9):
        small = random.normal(size=(2**octave, 2**octave, 3)).astype("f4")
        planes = [Image.fromarray(small[:, :, c]).resize((width, height), Image.BICUBIC) for c in range(3)]
        total += numpy.stack([numpy.asarray(plane) for plane in planes], -1) * 0.7**octave
    total = (total - total.mean()) / total.std() * 55 + 120
    return Image.fromarray(total.clip(0, 255).astype("u1"))


class Cases:
    def __init__(self, folder):
        self.folder, self.lines = folder, []

    def add(self, kind, file, expected, tolerance, *numbers):
        name = f"{len(self.lines)}.expected"
        numpy.ascontiguousarray(expected).tofile(self.folder / name)
        self.lines.append(" ".join(map(str, (kind, file, name, tolerance, *numbers))))

    def finish(self):
        (self.folder / "cases.txt").write_text("\n".join(self.lines) + "\n")


def write_files(folder, photo):
    """name -> how far from Pillow's pixels ours may be."""
    files = {}

    def save(name, image, tolerance=0, **options):
        image.save(folder / name, **options)
        files[name] = tolerance

    small = photo.resize((173, 131))
    for sampling, name in enumerate(("444", "422", "420")):
        save(f"{name}.jpg", small, subsampling=sampling, quality=85)
    save("progressive.jpg", small, progressive=True, quality=75)
    save("restarts.jpg", small, restart_marker_rows=1)
    save("gray.jpg", small.convert("L"))
    save("cmyk.jpg", small.convert("CMYK"), 1)  # ours rounds in the same way; Pillow's may be off by 1
    exif = Image.Exif()
    for orientation in range(1, 9):
        exif[0x0112] = orientation
        save(f"exif{orientation}.jpg", small, exif=exif)
    save("rgb.png", small)
    save("rgba.png", Image.merge("RGBA", (*small.split(), small.convert("L"))))
    save("gray.png", small.convert("L"))
    save("gray_alpha.png", Image.merge("LA", (small.convert("L"), small.convert("L"))))
    save("palette.png", small.quantize(200))
    save("bilevel.png", small.convert("1"))
    save("lossy.webp", small, quality=80)
    save("lossless.webp", small, lossless=True)
    photo.save(folder / "photo.jpg", quality=90)
    return files


def decode_cases(cases, folder, files):
    for name, tolerance in files.items():
        with Image.open(folder / name) as image:
            cases.add("decode", name, numpy.asarray(image.convert("RGB")), tolerance)
            if name.startswith("exif"):
                upright = ImageOps.exif_transpose(image)
                cases.add("upright", name, numpy.asarray(upright.convert("RGB")), tolerance)


def resize_cases(cases, folder):
    random = numpy.random.default_rng(1)
    with Image.open(folder / "photo.jpg") as opened:
        photo = opened.convert("RGB")
    for filter_number, interpolation in enumerate((Image.NEAREST, Image.BILINEAR, Image.BICUBIC)):
        for _ in range(25):
            width, height = random.integers(1, photo.width + 1), random.integers(1, photo.height + 1)
            left, top = random.integers(0, photo.width - width + 1), random.integers(0, photo.height - height + 1)
            size = int(random.integers(1, 300)), int(random.integers(1, 300))
            out = photo.crop((left, top, left + width, top + height))
            if interpolation == Image.BICUBIC:
                # New releases of Pillow sum the rows of tall images first, and overshoot is then cut elsewhere.
                out = out.resize((size[0], int(height)), interpolation)
            out = out.resize(size, interpolation)
            cases.add("resize", "photo.jpg", numpy.asarray(out), 0 if filter_number == 0 else 1,
                      left, top, width, height, *size, filter_number)


def transform_cases(cases, folder):
    with Image.open(folder / "photo.jpg") as opened:
        photo = opened.convert("RGB")
    normalise = transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    pipelines = {
        "train": [transforms.RandomResizedCrop(96), transforms.RandomHorizontalFlip()],
        "eval": [transforms.Resize(128), transforms.CenterCrop(112)],
        "padded": [transforms.Resize(50), transforms.CenterCrop(77)],
        "cifar": [transforms.Resize((40, 44)), transforms.RandomCrop(32, padding=4), transforms.RandomVerticalFlip()],
        "jitter": [transforms.CenterCrop(64), transforms.ColorJitter(0.4, 0.4, 0.4, 0.1)],
        "randaugment": [transforms.CenterCrop(90), transforms.RandomHorizontalFlip(), transforms.RandAugment(num_ops=3)],
        "floats": [transforms.RandomResizedCrop(64), transforms.ToTensor(), normalise],
    }
    # Where a resize differs by 1, what follows may widen it.
    tolerance = {"train": 1, "eval": 1, "padded": 1, "cifar": 1, "jitter": 2, "randaugment": 0, "floats": 1.01 / 255 / 0.224}
    for name, steps in pipelines.items():
        for index in range({"eval": 1, "padded": 1, "randaugment": 100}.get(name, 30)):
            with DrawnBy(Draws(7 + 2**40, 3, index)):
                out = transforms.Compose(steps)(photo)
            cases.add(name, "photo.jpg", numpy.asarray(out), tolerance[name], index)


def folder_case(folder):
    root = folder / "tree"
    for name in ("b/2.JPG", "b/10.jpeg", "a/z.png", "a/sub/1.png", "a/sub-x/1.png", "a/sub/deep/2.jpg", "10/x.jpg", "9/y.webp",
                 "a/none.txt", "Z/q.png", "\u00e9t\u00e9/1.jpg"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    samples = torchvision.datasets.ImageFolder(root).samples
    (folder / "samples.txt").write_text("".join(f"{label} {path}\n" for path, label in samples))


def main():
    folder = pathlib.Path(sys.argv[1])
    photo = Image.open(PHOTO).convert("RGB") if PHOTO.exists() else noise(500, 375, 0)
    cases = Cases(folder)
    decode_cases(cases, folder, write_files(folder, photo))
    resize_cases(cases, folder)
    transform_cases(cases, folder)
    cases.finish()
    folder_case(folder)


if __name__ == "__main__":
    main()
