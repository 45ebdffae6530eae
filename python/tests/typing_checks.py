"""What mypy accepts and refuses; the gate runs mypy on this file, and nobody imports it. An ignored error that is none fails."""

from __future__ import annotations

import numpy as np
import uptack as up

owners, yes, epsilon = np.int64(1000), np.uint16(10), np.float32(1.0)
plan: up.Plan = up.plan(owners=owners, yes=(yes, np.int32(20)), epsilon=epsilon, noise="none", trust="owners", form="one")
channel = plan.channel
counts = channel.draw_counts(owners, yes, seed=np.int8(1))
published: up.Published = channel.publish(counts, seed=np.int64(1))
estimate: up.Estimate = channel.estimate(published, interval="exact", confidence=np.float64(0.9))
one: up.Privacy = up.privacy(channel, owners=owners, views="release")
several: up.PrivacyTable = up.privacy(channel, owners=np.array([10, 20]), delta=1e-6)
deltas: up.PrivacyTable = up.privacy(channel, owners=100, delta=[1e-6, 1e-8])
epsilons: up.PrivacyTable = up.privacy(channel, owners=100, epsilon=np.array([0.5, 1.0]))
simulated: up.Simulation = up.simulate(channel, owners=owners, yes=yes, trials=np.int64(10), interval="mid-p")
composed: up.Composition = up.compose([(channel, np.int64(3))], owners=owners, progress=print)
trips: up.Contributions = up.plan(owners=owners, yes=yes, epsilon=1, options=["car", "bus", "bike"]).contributions
visits = up.Contributions("contributions(counts=5, most=2, r=0.001)", options=["a", "b", "c", "d", "e"])
release: up.PublishedCounts = trips.publish(trips.tally(trips.privatize(np.array([0, 1, 2]), seed=yes)), seed=np.int64(1))
estimates: up.OptionEstimates = trips.estimate(release, values=[1, np.float32(2), None], quantiles=[0.5], interval="exact")
row: up.OptionEstimate = estimates["car"]
combined: up.CombinedEstimate = estimates.union(["car", 1])
chances: up.OptionSimulation = up.simulate(visits, owners=owners, counts=[1, 2, 3, np.int64(4), 5], trials=10)
options_privacy: up.Privacy = up.privacy(trips, owners=owners, views=["linked", "one_aggregator"])
bars: up.BarChart = estimates.chart(simultaneous=True)

up.plan(owners=1000, yes=10, epsilon=1, noise="aggregator")  # type: ignore[arg-type]
up.plan(owners=1000, yes=10, epsilon=1, trust="anybody")  # type: ignore[arg-type]
up.plan(owners=1000, yes=10, epsilon=1, solve="sd")  # type: ignore[arg-type]
up.plan(owners=1000, yes=10, epsilon=1, linked_epsilon="all")  # type: ignore[arg-type]
up.plan(owners=1000.0, yes=10, epsilon=1)  # type: ignore[arg-type]
up.privacy(channel, owners=100, views="relase")  # type: ignore[arg-type]
channel.estimate(counts, interval="exakt")  # type: ignore[arg-type]
up.simultaneous(0.95, 10, sharing="bonferoni")  # type: ignore[arg-type]
estimates.to_frame("excel")  # type: ignore[arg-type]
up.simulate(visits, owners=100, yes=10)  # type: ignore[call-overload]
up.Contributions("choice(k=2, r=0.1)", options=[1, 2])  # type: ignore[list-item]
