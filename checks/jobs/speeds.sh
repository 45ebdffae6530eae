#!/usr/bin/env bash
# How fast vehicles are. Ranges of an attribute are not counted together yet; each is a question. Usage: checks/jobs/speeds.sh UPTACK
. "$(dirname "$0")/common.sh"

{ echo "owner,speed:double"; for i in $(seq 400); do echo "vehicle-$i,$((i * 7 % 130)).5"; done; } > vehicles.csv
start_desk '"speed"'
refused 'ask for a range with a question of its own, as in `speed >= 0 && speed < 50`' --question "How fast are you?" \
  --each speed --values 0..50,50..100,100..150 --owners 400 --yes 0..200 --epsilon 1 --closes 1h
# What the sentence says.
ask --question "Are you slower than 50?" --where 'speed >= 0 && speed < 50' --owners 400 --yes 0..200 --epsilon 1
answer_all vehicles.csv
result
holds "" "$(awk -F , 'NR > 1 && $2 < 50' vehicles.csv | wc -l)" || fail "the vehicles below 50"
echo "$job: ranges are refused with the question to ask, and its count is within its interval"
