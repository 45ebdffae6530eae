#!/usr/bin/env bash
# A count every five minutes of a day. If each window has to count everybody, so many of them leave each too small a share of ε; if
# each owner is counted once in the day, a day costs little more than two questions. Usage: checks/jobs/day.sh UPTACK
. "$(dirname "$0")/common.sh"

start_desk '"station"'
day=(--question "Are you at station 7?" --where 'station == "7"' --owners 5000 --yes 0..400 --epsilon 1)
refused "would say next to nothing.*more than half of the expected range of yes, 0 to 400" "${day[@]}" --every 5m --times 288 \
  --most-yes 288
windows=$(sed -n 's/^hint: in \([0-9]*\) windows, the error would be .*/\1/p' refused.txt)
[ -n "$windows" ] || fail "no number of windows is proposed: $(cat refused.txt)"
# What the sentence says.
analyst ask "${day[@]}" --every 1h --times "$windows" --most-yes "$windows" > asked.txt
[ "$(grep -c ' to ' asked.txt)" = "$windows" ] || fail "not $windows windows: $(cat asked.txt)"
[ "$(analyst queries | awk 'NR > 1' | grep -o '[0-9-]* [0-9:]* to' | sort -u | wc -l)" = "$windows" ] || fail "windows look alike"
# Counted once a day.
analyst ask "${day[@]}" --every 5m --times 288 > day.txt
error=$(sed -n 's/^expected error \([0-9]*\).*/\1/p' day.txt)
[ "${error:-1000}" -lt 10 ] || fail "the error of a day is $error: $(tail -n 8 day.txt)"
grep -q "counted in at most one of the 288 counts: windows miss" day.txt || fail "who is left out is not said: $(tail -n 8 day.txt)"
echo "$job: 288 windows that count everybody are refused, the $windows that are proposed are asked; counted once a day, the error is $error"
