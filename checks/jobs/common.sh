# What the jobs of a new user share. Each job runs in a folder of its own, with a desk on this machine, as the tutorial does it. A job
# that works compares its result with the truth. A job that is refused checks that the sentence says what to do instead; once
# Uptack can do the job, its check becomes one of a result.
#
# The scripts source this file with the path of `uptack` as their first argument.

set -euo pipefail
uptack=$(realpath "$1")
job=$(basename "$0" .sh)
folder=$(mktemp -d)
desk_process=
trap 'status=$?; [ -z "$desk_process" ] || kill "$desk_process" 2> /dev/null || true; rm -rf "$folder"; exit "$status"' EXIT
cd "$folder"

fail() {
  echo "$job: $*" >&2
  exit 1
}

# Starts a desk and writes a policy of owners who allow questions about these attributes, given as TOML strings.
start_desk() {
  "$uptack" serve --data desk > desk.txt 2> desk.log &
  desk_process=$!
  for _ in $(seq 300); do
    grep -q "signing with" desk.txt && break
    sleep 0.1
  done
  address=$(sed -n 's/^listening on //p' desk.txt | head -n 1)
  [ -n "$address" ] || fail "the desk did not start: $(cat desk.log)"
  cat > policy.toml <<END
signers = ["$(sed -n 's/^signing with //p' desk.txt)"]
attributes = [$1]

[card]
answer = 8.0
linked = 8.0
release = 1.0
answer-with-release = 8.0
delta = 1e-5
honest = 1.0
separate-operators = false
enrolment = false

[lifetime]
linked = 60.0
release = 10.0
delta = 1e-3
END
}

# A command of an analyst.
analyst() {
  "$uptack" "$@" --desk "$address" --token desk/tokens/analyst
}

# Opens a question and remembers its name. It stays open as long as a busy machine needs for all its owners.
ask() {
  analyst ask "$@" --closes "${closes:-20s}" > asked.txt
  query=$(head -n 1 asked.txt | cut -d ' ' -f 1)
}

# Asks what is refused: the exit code is 1, nothing is opened, and the words say what to do instead.
refused() {
  local words=$1 status=0
  shift
  analyst ask "$@" > refused.txt 2>&1 || status=$?
  [ "$status" = 1 ] || fail "the exit code is $status, not 1: $(head -n 5 refused.txt)"
  grep -q -- "$words" refused.txt || fail "\`$words\` is not in: $(cat refused.txt)"
  [ "$(analyst queries --json)" = "[]" ] || fail "something was opened"
}

# Every owner of a table answers.
answer_all() {
  "$uptack" fleet "$1" --desk "$address" --policy policy.toml --data fleet --within 2s > answered.txt
  grep -q " answered " answered.txt || fail "nobody answered: $(cat answered.txt)"
}

# The result, with an interval that misses the truth once in ten thousand runs.
result() {
  analyst result "$query" --wait --json --confidence 99.99% > result.json 2> result.log || fail "$(cat result.log)"
}

# Whether a number of the result's JSON, given by its path, lies within the interval beside it.
holds() {
  python3 - "$@" <<'END'
import json, sys
name, truth = sys.argv[1], float(sys.argv[2])
result = json.load(open("result.json"))
parts = {part["name"]: part for part in result.get("estimates", [])} if name else {"": result}
low, high = parts[name]["interval"]
if not low <= truth <= high:
    sys.exit(f"{name}: {truth} is not between {low} and {high}")
END
}
