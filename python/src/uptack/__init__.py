"""Count a crowd without learning anyone's answer.

>>> import numpy as np, uptack as up
>>> channel = up.Channel("randomized-response(t=0.8)")
>>> cells = channel.privatize(np.arange(1000) < 250)
>>> estimate = channel.estimate(np.bincount(cells, minlength=channel.size))
>>> estimate.low <= estimate.value <= estimate.high
True
"""

from ._channel import Cell, Channel, Estimate
from ._chart import BarChart, Chart
from ._composition import Composition, LossDistribution
from ._contributions import Contributions, PublishedCounts
from ._core import __version__
from ._errors import UptackError
from ._functions import (
    algebra,
    compose,
    consistent,
    estimate_many,
    evaluate,
    loss_distribution,
    plan,
    privacy,
    simultaneous,
    verify,
)
from ._option_results import (
    CombinedEstimate,
    MeanEstimate,
    OptionEstimate,
    OptionEstimates,
    OptionSimulation,
    Quantile,
)
from ._privacy import Privacy, PrivacyTable
from ._published import Published
from ._result import Bounds
from ._results import Algebra, Audit, Choice, Evaluation, Plan, Simulation, Verification
from ._trials import audit, simulate

__all__ = [
    "Algebra",
    "Audit",
    "BarChart",
    "Bounds",
    "Cell",
    "Channel",
    "Chart",
    "Choice",
    "CombinedEstimate",
    "Composition",
    "Contributions",
    "Estimate",
    "Evaluation",
    "LossDistribution",
    "MeanEstimate",
    "OptionEstimate",
    "OptionEstimates",
    "OptionSimulation",
    "Plan",
    "Privacy",
    "PrivacyTable",
    "Published",
    "PublishedCounts",
    "Quantile",
    "Simulation",
    "UptackError",
    "Verification",
    "__version__",
    "algebra",
    "audit",
    "compose",
    "consistent",
    "estimate_many",
    "evaluate",
    "loss_distribution",
    "plan",
    "privacy",
    "simulate",
    "simultaneous",
    "verify",
]
