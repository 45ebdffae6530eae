#!/usr/bin/env bash
# A count every five minutes of a day. So many windows leave each too small a share of ε. Usage: checks/jobs/day.sh UPTACK
. "$(dirname "$0")/common.sh"

start_desk '"station"'
refused "would say next to nothing.*more than half of the expected range of yes, 0 to 400" --question "Are you at station 7?" \
  --where 'station == "7"' --owners 5000 --yes 0..400 --epsilon 1 --every 5m --times 288
windows=$(sed -n 's/^hint: in \([0-9]*\) windows, the error would be .*/\1/p' refused.txt)
[ -n "$windows" ] || fail "no number of windows is proposed: $(cat refused.txt)"
# What the sentence says.
analyst ask --question "Are you at station 7?" --where 'station == "7"' --owners 5000 --yes 0..400 --epsilon 1 --every 1h \
  --times "$windows" > asked.txt
[ "$(grep -c ' to ' asked.txt)" = "$windows" ] || fail "not $windows windows: $(cat asked.txt)"
[ "$(analyst queries | awk 'NR > 1' | grep -o '[0-9-]* [0-9:]* to' | sort -u | wc -l)" = "$windows" ] || fail "windows look alike"
echo "$job: 288 windows are refused, and the $windows that are proposed are asked"
