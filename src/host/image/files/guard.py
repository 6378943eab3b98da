"""Whether an installation touched what an image guards.

guard.py state PATTERN...        names and versions of the guarded packages, as JSON
guard.py touched SINCE PATTERN...  their files that changed after the file SINCE, one a line, with the
                                 package that lists the same file
"""

import fnmatch
import importlib.metadata
import json
import os
import re
import sys


def name_of(distribution):
    return re.sub(r"[-_.]+", "-", distribution.metadata["Name"]).lower()


def main():
    what, rest = sys.argv[1], sys.argv[2:]
    since = os.stat(rest.pop(0)).st_mtime_ns if what == "touched" else 0
    guarded, others = {}, {}
    for distribution in importlib.metadata.distributions():
        name = name_of(distribution)
        side = guarded if any(fnmatch.fnmatch(name, pattern) for pattern in rest) else others
        side[name] = distribution
    if what == "state":
        json.dump({name: one.version for name, one in sorted(guarded.items())}, sys.stdout)
        return
    owners = {}
    for name, distribution in others.items():
        for file in distribution.files or []:
            owners[str(file)] = name
    for name, distribution in sorted(guarded.items()):
        for file in distribution.files or []:
            try:
                changed = os.lstat(distribution.locate_file(file)).st_ctime_ns > since
            except OSError:
                changed = True
            if changed and "__pycache__" not in str(file):
                print(f"{name}: {file} ({owners.get(str(file), 'changed')})")


main()
