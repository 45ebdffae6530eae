#!/usr/bin/env bash
# A survey among people. They answer yes or no; a choice among several is not asked yet. Usage: checks/jobs/survey.sh UPTACK
. "$(dirname "$0")/common.sh"

start_desk ''
refused "people answer yes or no: ask one question for each choice" --people --question "What do you drink?" \
  --values tea,coffee,water --owners 20 --yes 0..20 --epsilon 1 --closes 1h
# What the sentence says.
closes=40s
ask --people --question "Do you drink tea?" --owners 20 --yes 0..20 --epsilon 1
person() {
  local truth=no
  [ $(($1 % 3)) = 0 ] && truth=yes
  "$uptack" answer --desk "$address" --policy policy.toml --data "person-$1" --truth "$truth" --within 1s > "person-$1.txt" 2>&1
}
# Eighteen of twenty: four of five are enough.
people=()
for i in $(seq 18); do
  person "$i" &
  people+=($!)
done
for i in $(seq 18); do
  wait "${people[$((i - 1))]}" && grep -q " answered" "person-$i.txt" || fail "person $i: $(cat "person-$i.txt")"
done
result
holds "" 6 || fail "the people who drink tea"
echo "$job: a choice is refused with what to ask, and the count of yes of 18 of 20 people is within its interval"
