#!/bin/sh
# Plans 500 random requests of up to a million owners and looks for anything that is certified and better. About a quarter
# of an hour on one core. The last line is what docs/choosing-parameters.md quotes.
set -eu
cd "$(dirname "$0")/.."
cargo test --release -p uptack --test plan -- --ignored --nocapture five_hundred
