#!/bin/sh
# Plans 500 random requests of up to a million owners and looks for anything that is certified and better. The last line
# is what docs/choosing-parameters.md quotes. `checks/planner_survey.sh 100 10`: 100 requests, or what ten minutes allow.
set -eu
cd "$(dirname "$0")/.."
cargo run --release -p uptack-checks --bin planner_survey -- "${1:-500}" "${2:-60}"
