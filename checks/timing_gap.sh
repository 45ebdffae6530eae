#!/bin/sh
# Times owners as a leader would, and prints how far yes and no can be told apart. Not in the gate: it takes about five
# minutes, because reports wait for their moment. Its last result is in docs/owner.md.
set -eu
cd "$(dirname "$0")/.."
exec cargo run --quiet -p uptack-checks --bin timing_gap -- "$@"
