#!/usr/bin/env python3
"""Rivals of `yoke-bench-loader --images`: RandomResizedCrop(224), a flip, uint8 batches, on CPU workers.

usage: jpeg_loaders.py torch|dali|ffcv|spdl FOLDER WORKERS SECONDS

FOLDER is a folder of class folders. Prints images/s once the workers run, as JSON; exit code 77 where the library is not there.
"""

import json
import os
import pathlib
import sys
import tempfile
import time

BATCH, SIZE = 64, 224


def rate(batches, seconds):
    """Images/s of an endless iterator of batch sizes, after its start."""
    for _ in range(4):
        next(batches)
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        count += next(batches)
    return count / (time.perf_counter() - begin)


def over_and_over(make):
    while True:
        yield from make()


def torch_loader(folder, workers):
    import torch
    from torchvision import datasets, transforms

    steps = transforms.Compose([transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip(),
                                transforms.PILToTensor()])
    loader = torch.utils.data.DataLoader(datasets.ImageFolder(folder, steps), BATCH, shuffle=True, num_workers=workers,
                                         persistent_workers=True, drop_last=True)
    return over_and_over(lambda: (len(labels) for _, labels in loader))


def dali(folder, workers):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=workers, device_id=None)
    def pipeline():
        files, labels = fn.readers.file(file_root=folder, random_shuffle=True)
        images = fn.decoders.image_random_crop(files, device="cpu", random_area=[0.08, 1.0],
                                               random_aspect_ratio=[0.75, 4 / 3], num_attempts=10)
        images = fn.resize(images, size=[SIZE, SIZE], interp_type=types.INTERP_TRIANGULAR)
        return fn.flip(images, horizontal=fn.random.coin_flip()), labels

    built = pipeline()
    built.build()
    return over_and_over(lambda: [len(built.run()[1])])


def ffcv(folder, workers):
    from ffcv.fields import IntField, RGBImageField
    from ffcv.fields.basics import IntDecoder
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import RandomHorizontalFlip, ToTensor
    from ffcv.writer import DatasetWriter
    from torchvision.datasets import ImageFolder

    file = pathlib.Path(tempfile.mkdtemp()) / "photos.beton"
    writer = DatasetWriter(str(file), {"image": RGBImageField(write_mode="jpg", jpeg_quality=90), "label": IntField()},
                           num_workers=workers)
    writer.from_indexed_dataset(ImageFolder(folder))
    loader = Loader(str(file), batch_size=BATCH, num_workers=workers, order=OrderOption.RANDOM, drop_last=True,
                    pipelines={"image": [RandomResizedCropRGBImageDecoder((SIZE, SIZE)), RandomHorizontalFlip(), ToTensor()],
                               "label": [IntDecoder(), ToTensor()]})
    return over_and_over(lambda: (len(labels) for _, labels in loader))


def spdl(folder, workers):
    import random

    import spdl.io
    from spdl.pipeline import PipelineBuilder

    files = [str(path) for path in pathlib.Path(folder).glob("*/*.jpg")]

    def paths():
        while True:
            yield random.choice(files)

    # SPDL's documented way to load images: FFmpeg decodes and scales; the crop is drawn for a whole frame of 500 x 375.
    def decode(path):
        area, ratio = random.uniform(0.08, 1) * 500 * 375, random.uniform(0.75, 4 / 3)
        width, height = min(500, int((area * ratio) ** 0.5)), min(375, int((area / ratio) ** 0.5))
        left, top = random.randint(0, 500 - width), random.randint(0, 375 - height)
        flip = ",hflip" if random.random() < 0.5 else ""
        chain = f"crop={width}:{height}:{left}:{top},scale={SIZE}:{SIZE}{flip},format=pix_fmts=rgb24"
        return spdl.io.decode_packets(spdl.io.demux_image(path), filter_desc=chain)

    pipeline = (PipelineBuilder().add_source(paths()).pipe(decode, concurrency=workers).aggregate(BATCH)
                .pipe(lambda frames: spdl.io.convert_frames(frames)).add_sink(3).build(num_threads=workers))
    pipeline.start()
    return over_and_over(lambda: (BATCH for _ in pipeline))


def main():
    name, folder, workers, seconds = sys.argv[1:]
    loaders = {"torch": torch_loader, "dali": dali, "ffcv": ffcv, "spdl": spdl}
    try:
        batches = loaders[name](folder, int(workers))
    except ImportError as error:
        print(f"{name}: {error}", file=sys.stderr)
        sys.exit(77)
    print(json.dumps({"images_per_s": rate(batches, float(seconds))}), flush=True)
    os._exit(0)  # threads of some loaders would keep the process


if __name__ == "__main__":
    main()
