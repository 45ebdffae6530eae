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

up.plan(owners=1000, yes=10, epsilon=1, noise="aggregator")  # type: ignore[arg-type]
up.plan(owners=1000, yes=10, epsilon=1, trust="anybody")  # type: ignore[arg-type]
up.plan(owners=1000, yes=10, epsilon=1, solve="sd")  # type: ignore[arg-type]
up.plan(owners=1000, yes=10, epsilon=1, linked_epsilon="all")  # type: ignore[arg-type]
up.plan(owners=1000.0, yes=10, epsilon=1)  # type: ignore[arg-type]
up.privacy(channel, owners=100, views="relase")  # type: ignore[arg-type]
channel.estimate(counts, interval="exakt")  # type: ignore[arg-type]
up.simultaneous(0.95, 10, sharing="bonferoni")  # type: ignore[arg-type]
