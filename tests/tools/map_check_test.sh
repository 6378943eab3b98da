#!/usr/bin/env bash
source "$(dirname "${BASH_SOURCE[0]}")/fake_machine.sh"
mkdir -p "$checkout"/src/host/core "$checkout"/src/tensor/comm "$checkout"/src/cli "$checkout"/docs
touch "$checkout"/src/{host/core,tensor/comm}/CMakeLists.txt "$checkout"/src/cli/train.cpp

# maps README ARCHITECTURE
maps() {
  printf '%b\n' "$1" >"$checkout/README.md"
  printf '%b\n' "$2" >"$checkout/ARCHITECTURE.md"
}
true_rooms='## Rooms\n| `core` | 0 |\n| `comm` | 2 |'

test_that "a true map passes"
maps '`tools/setup --full` `yoke train --lr 3` [a](ARCHITECTURE.md#rooms) `docs/<room>.md`' \
  "$true_rooms"
runs 0 tools/map-check

test_that "files, links and commands that do not exist are named with their line"
maps '\n`tools/nothing`\n[a](docs/none.md)\n```sh\ntools/none --x\nyoke fly\n```' "$true_rooms"
runs 1 tools/map-check
says "README.md:2: tools/nothing does not exist"
says "README.md:3: link to docs/none.md, which does not exist"
says "README.md:5: tools/none does not exist"
says 'README.md:6: `yoke fly` has no source under src/cli'

test_that "what is marked as not yet there, and what commands make, is left out"
maps '`yoke fly` (not yet)\n`runs/quickstart/result.json` `build/dev/bin/yoke`' "$true_rooms"
runs 0 tools/map-check

test_that "rooms are compared both ways"
maps '' '## Rooms\n| `core` | 0 |\n| `ghost` | 9 |'
runs 1 tools/map-check
says "room comm under src/ is not named"
says "room ghost of the table is not under src/"

test_that "a missing map fails"
rm "$checkout/README.md"
runs 1 tools/map-check
says "README.md does not exist"
