#!/usr/bin/env bash
# How many of two groups did something. Usage: checks/jobs/groups.sh UPTACK
. "$(dirname "$0")/common.sh"

{ echo "owner,group,bought"
  for i in $(seq 500); do
    [ $((i % 2)) = 0 ] && group=new || group=old
    [ $((i % 5)) -lt $([ $group = new ] && echo 3 || echo 1) ] && bought=yes || bought=no
    echo "customer-$i,$group,$bought"
  done; } > customers.csv
start_desk '"group", "bought"'
ask --question "Did you buy?" --each group --values new,old --where 'bought == "yes"' --owners 500 --yes 0..250 --epsilon 1
answer_all customers.csv
result
for group in new old; do
  holds "$group" "$(grep -c ",$group,yes\$" customers.csv)" || fail "the group $group"
done
echo "$job: the counts of both groups are within their intervals"
