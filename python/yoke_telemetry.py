"""Tells `yoke launch` and `yoke top` what a Python rank does. One file, no dependency: copy it beside your script.

    import yoke_telemetry
    telemetry = yoke_telemetry.start()
    for step, batch in enumerate(loader):
        with telemetry.collective("all_reduce", nbytes):   # around what the ranks do together; optional
            ...
        telemetry.step(step, samples=len(batch), loss=loss)

A call costs a few microseconds; nothing is sent, no thread runs. Where no record can be made (no space, not Linux) one
warning says so and the calls do nothing. The record's layout is docs/telemetry.md, version 1.

start() also lets the launcher ask where this rank stands: a signal (SIGRTMIN+6) makes Python's faulthandler write the
stack of every thread to $YOKE_STACK_FILE.
"""

import contextlib
import faulthandler
import mmap
import os
import signal
import struct
import sys
import threading
import time
import warnings

_SIZE = 4096
_RING = 16
_HOST_SPACE = 0xEFFFFFFC  # the kernel's number of the first PID name space
_KINDS = {"all_reduce": 1, "broadcast": 2, "all_gather": 3, "reduce_scatter": 4, "all_to_all": 5, "send": 6,
          "receive": 7, "barrier": 8}


def _folder_name(job):
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "_" for c in job[:128])
    return name if name.strip(".") else "_" + name


def _start_time(pid):
    """Clock ticks since boot at which the process began."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rsplit(b")", 1)[1].split()[19])


class Telemetry:
    """One rank's record. Threads: any."""

    def __init__(self, root=None, job=None, rank=None):
        self._lock = threading.Lock()
        self._map = None
        self._sequence = 0
        self._begun = 0
        self._numbers = {}  # of the next operation, by group
        self._samples = 0
        env = os.environ.get
        rank = int(env("RANK", "0")) if rank is None else rank
        job = job or env("YOKE_JOB_ID") or env("TORCHELASTIC_RUN_ID") or "local"
        root = root or env("YOKE_TELEMETRY_DIR") or f"/dev/shm/yoke-{os.geteuid()}"
        try:
            self._open(root, job, rank)
        except OSError as error:
            warnings.warn(f"no telemetry, so the launcher cannot see this rank: {error}")

    def _open(self, root, job, rank):
        env = os.environ.get
        folder = os.path.join(root, _folder_name(job))
        os.makedirs(root, mode=0o700, exist_ok=True)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if os.stat(folder).st_uid != os.geteuid():
            raise PermissionError(f"{folder} is another user's")
        self._path = os.path.join(folder, str(rank))
        now = time.monotonic_ns()
        pid = os.getpid()
        space = os.stat("/proc/self/ns/pid").st_ino
        image = bytearray(_SIZE)
        struct.pack_into("<8sIIQQQQQqqq", image, 0, b"YOKETELE", 1, _SIZE, 0, pid, pid if space == _HOST_SPACE else 0,
                         space, _start_time(pid), time.time_ns(), now, now)
        struct.pack_into("<iiii", image, 80, rank, int(env("WORLD_SIZE", "1")), int(env("LOCAL_RANK", rank)),
                         int(env("LOCAL_WORLD_SIZE", "1")))
        for offset, text in ((96, job), (160, os.uname().nodename), (288, os.path.basename(sys.argv[0] or "python"))):
            self._put_text(image, offset, 64, text)
        struct.pack_into("<q", image, 480, -1)  # queue depth: not known
        temporary = f"{folder}/.{rank}.{pid}"
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            if os.write(descriptor, image) != _SIZE:
                raise OSError("no space for the telemetry record")
            self._map = mmap.mmap(descriptor, _SIZE)
            os.rename(temporary, self._path)
        finally:
            os.close(descriptor)
        self._pid = pid

    @staticmethod
    def _put_text(buffer, offset, size, text):
        raw = text.encode()[:size - 1].decode(errors="ignore").encode()
        struct.pack_into(f"{size}s", buffer, offset, raw)

    @contextlib.contextmanager
    def _change(self):
        """Makes what is written inside visible together: the sequence is odd meanwhile."""
        with self._lock:
            self._sequence += 1
            struct.pack_into("<Q", self._map, 16, self._sequence)
            now = time.monotonic_ns()
            struct.pack_into("<q", self._map, 72, now)
            try:
                yield now
            finally:
                self._sequence += 1
                struct.pack_into("<Q", self._map, 16, self._sequence)

    def _active(self):
        return self._map is not None and os.getpid() == self._pid

    def step(self, step, samples=0, epoch=0, loss=None):
        """A step has ended."""
        if not self._active():
            return
        with self._change() as now:
            self._samples += samples
            struct.pack_into("<QQQ", self._map, 352, epoch, step, samples)
            struct.pack_into("<Qq", self._map, 464, self._samples, now)
            if loss is not None:
                struct.pack_into("<dQ", self._map, 488, float(loss), 1)

    @contextlib.contextmanager
    def collective(self, kind, nbytes=0, dtype=0, group=0):
        """Around one operation that the ranks do together; kinds as in docs/telemetry.md."""
        if not self._active():
            yield
            return
        with self._change() as now:
            number = self._numbers.get(group, 0)  # as the group's other ranks count
            self._numbers[group] = number + 1
            begun = self._begun
            place = 576 + 64 * (begun % _RING)
            struct.pack_into("<QqqQIIIi", self._map, place, number, now, 0, nbytes, _KINDS[kind], dtype, group, -1)
            self._begun += 1
            struct.pack_into("<Q", self._map, 504, self._begun)
        yield  # an error inside leaves it open: this rank did not come out of it
        if not self._active():
            return
        with self._change() as now:
            if begun + _RING >= self._begun:
                struct.pack_into("<q", self._map, place + 16, now)

    def failed(self, error):
        """Keeps an error's text; the record then outlives the process."""
        if not self._active():
            return
        with self._change() as now:
            self._put_text(self._map, 1600, 1024, str(error))
            struct.pack_into("<q", self._map, 512, now)

    def close(self):
        """A normal end: the record goes."""
        if not self._active():
            return
        self._map.close()
        self._map = None
        with contextlib.suppress(OSError):
            os.unlink(self._path)
            os.rmdir(os.path.dirname(self._path))  # stays while other ranks have files in it


def _listen_for_the_launcher():
    path = os.environ.get("YOKE_STACK_FILE")
    if not path:
        return
    with contextlib.suppress(OSError, AttributeError, ValueError):
        file = open(path, "a", buffering=1)  # stays open: faulthandler writes to its descriptor
        faulthandler.register(signal.SIGRTMIN + 6, file=file, all_threads=True, chain=False)


def start():
    """Begins this rank's record, which ends with the process; an uncaught error is kept in it."""
    telemetry = Telemetry()
    _listen_for_the_launcher()
    import atexit
    before = sys.excepthook

    def keep(kind, error, trace):
        telemetry.failed(f"{kind.__name__}: {error}")
        telemetry._map = None
        before(kind, error, trace)

    sys.excepthook = keep
    atexit.register(telemetry.close)
    return telemetry
