"""The extension module: plain arguments in, documents of JSON out."""

from typing import Any, Callable, Optional, Union

import numpy as np
import numpy.typing as npt

__version__: str

_Progress = Optional[Callable[[int, int], object]]

class Channel:
    @staticmethod
    def parse(text: str) -> Channel: ...
    @staticmethod
    def from_json(text: str) -> Channel: ...
    @staticmethod
    def from_cells(cells: list[tuple[str, str, str]]) -> Channel: ...
    @property
    def mechanism(self) -> str: ...
    @property
    def noise(self) -> Optional[str]: ...
    @property
    def determined(self) -> bool: ...
    @property
    def answers(self) -> list[list[str]]: ...
    @property
    def cells(self) -> list[tuple[str, int, int]]: ...
    def document(self) -> str: ...
    def algebra(self) -> str: ...
    def linked_epsilon(self) -> Optional[float]: ...
    def answer_epsilon(self, answer: int) -> Optional[float]: ...
    def sd(self, owners: int, yes: float) -> float: ...
    def privatize(self, truths: npt.NDArray[np.bool_], seed: Optional[int]) -> npt.NDArray[np.uint8]: ...
    def draw_counts(self, owners: int, yes: int, seed: Optional[int]) -> list[int]: ...
    def tally_of_cells(self, cells: list[int]) -> str: ...
    def publish(self, cells: list[int], seed: Optional[int]) -> tuple[int, int]: ...
    def estimate_cells(self, cells: list[int], confidence: str, interval: str) -> str: ...
    def estimate_tally(self, tally: str, confidence: str, interval: str) -> str: ...
    def estimate_sum(self, owners: int, sum: int, confidence: str, interval: str) -> str: ...

class Contributions:
    @staticmethod
    def parse(text: str, options: Optional[list[str]], bins: Optional[list[float]]) -> Contributions: ...
    @staticmethod
    def from_json(text: str) -> Contributions: ...
    @property
    def mechanism(self) -> str: ...
    @property
    def given_names(self) -> Optional[list[str]]: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def bins(self) -> Optional[list[float]]: ...
    @property
    def counts(self) -> int: ...
    @property
    def most(self) -> int: ...
    @property
    def is_choice(self) -> bool: ...
    @property
    def has_silence(self) -> bool: ...
    @property
    def noise(self) -> Optional[str]: ...
    def yes_no(self) -> Optional[Channel]: ...
    def document(self) -> str: ...
    def linked_epsilon(self) -> Optional[float]: ...
    def sd(self, owners: int, holders: float) -> float: ...
    def index(self, text: str) -> int: ...
    def binned(self, values: npt.NDArray[np.float64]) -> list[int]: ...
    def privatize(self, truths: npt.NDArray[np.int64], width: int, seed: Optional[int]) -> npt.NDArray[np.int32]: ...
    def publish(self, owners: int, counts: list[int], seed: Optional[int]) -> list[int]: ...
    def estimate(
        self,
        tally: str,
        values: Optional[list[Optional[float]]],
        quantiles: list[float],
        confidence: str,
        interval: str,
    ) -> str: ...
    def union(self, tally: str, options: list[int], confidence: str) -> str: ...
    def difference(self, tally: str, pair: tuple[int, int], confidence: str) -> str: ...

class Plan:
    def document(self) -> str: ...
    def card_json(self) -> str: ...
    def card_toml(self) -> str: ...
    def chart(self, progress: _Progress = ...) -> tuple[str, str]: ...

class Composition:
    def __init__(self, parts: list[tuple[str, int]], owners: int, work: int) -> None: ...
    def epsilon(self, delta: float, progress: _Progress = ...) -> Optional[tuple[float, float]]: ...
    def delta(self, epsilon: float, progress: _Progress = ...) -> Optional[tuple[float, float]]: ...
    def linked(self) -> Optional[float]: ...

def plan(
    yes: tuple[int, int],
    *,
    options: Optional[int],
    counts: Optional[int],
    most_yes: Optional[int],
    owners: Optional[int],
    epsilon: Optional[float],
    delta: float,
    error: Optional[float],
    answer_epsilon: Optional[float],
    linked_epsilon: Optional[str],
    noise: Optional[str],
    trust: Optional[str],
    participation: Optional[str],
    honest: str,
    minimum_batch: Optional[int],
    solve: Optional[str],
    form: Optional[str],
    objective: str,
    over: str,
    family: Optional[str],
    progress: _Progress,
) -> Plan: ...
def privacy(
    channel: Channel,
    owners: int,
    *,
    delta: Optional[float],
    epsilon: Optional[float],
    repeat: Optional[int],
    honest: str,
    work: int,
    progress: _Progress,
) -> str: ...
def some_views(
    channel: Channel,
    owners: int,
    *,
    views: list[str],
    delta: Optional[float],
    epsilon: Optional[float],
    repeat: Optional[int],
    honest: str,
    work: int,
    progress: _Progress,
) -> str: ...
def mechanism(text: str) -> Union[Channel, Contributions]: ...
def contribution_privacy(
    contributions: Contributions,
    owners: int,
    *,
    views: Optional[list[str]],
    delta: Optional[float],
    epsilon: Optional[float],
    repeat: Optional[int],
    honest: str,
    work: int,
    progress: _Progress,
) -> str: ...
def audit_contributions(
    contributions: Contributions,
    *,
    samples: int,
    owners: int,
    confidence: str,
    seed: Optional[int],
    progress: _Progress,
) -> str: ...
def simulate_contributions(
    contributions: Contributions,
    *,
    owners: int,
    counts: list[int],
    trials: int,
    seed: Optional[int],
    confidence: str,
    interval: str,
    per_owner: bool,
    progress: _Progress,
) -> str: ...
def bars(title: str, subtitle: str, bars: list[tuple[str, float, float, float]]) -> str: ...
def release_loss(
    mechanism: str,
    owners: int,
    *,
    repetitions: int,
    smallest_delta: float,
    honest: str,
    work: int,
    progress: _Progress,
) -> tuple[float, list[float], list[float], float]: ...
def audit_channel(
    channel: Channel,
    *,
    samples: int,
    owners: int,
    delta: float,
    confidence: str,
    seed: Optional[int],
    progress: _Progress,
) -> str: ...
def audit_callable(
    randomizer: Callable[[Any], Any],
    name: str,
    *,
    claimed: tuple[float, float],
    samples: int,
    confidence: str,
    batch: Optional[int],
    progress: _Progress,
) -> str: ...
def simulate(
    channel: Channel,
    *,
    owners: int,
    yes: int,
    trials: int,
    seed: Optional[int],
    confidence: str,
    interval: str,
    per_owner: bool,
    keep_estimates: bool,
    progress: _Progress,
) -> tuple[str, list[float]]: ...
def algebra(text: str, *, owners: Optional[int], yes: Optional[int]) -> tuple[Channel, str]: ...
def verify(
    text: str,
    *,
    toml: bool,
    desk_key: Optional[str],
    allow_wider: bool,
    work: int,
    progress: _Progress,
) -> str: ...
def evaluate(
    *,
    data: Optional[str],
    at: Optional[int],
    trials: int,
    factors: list[int],
    seed: int,
    progress: _Progress,
) -> str: ...
def simultaneous_kind(interval: str) -> str: ...
def each_confidence(confidence: str, queries: int, sharing: str) -> float: ...
def consistent(estimates: list[tuple[float, float]], owners: int) -> list[tuple[float, float]]: ...
def claim(value: Optional[float]) -> str: ...
def nearest(value: float) -> str: ...
