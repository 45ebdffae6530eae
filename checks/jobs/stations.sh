#!/usr/bin/env bash
# Counts at twenty stations, each vehicle being at one of them. Usage: checks/jobs/stations.sh UPTACK
. "$(dirname "$0")/common.sh"

{ echo "owner,station"; for i in $(seq 600); do echo "vehicle-$i,$((i * i % 20 + 1))"; done; } > vehicles.csv
start_desk '"station"'
ask --question "At which station are you?" --each station --values "$(seq -s , 20)" --owners 600 --yes 0..150 --epsilon 1
answer_all vehicles.csv
result
for station in $(seq 20); do
  holds "$station" "$(grep -c ",$station\$" vehicles.csv || true)" || fail "station $station"
done
echo "$job: twenty counts, each within its interval"
