"""Several releases together, and the loss distributions that they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from . import _arguments, _core
from ._errors import UptackError
from ._result import Bounds, table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._arguments import Progress, Real

#: Results of compositions, the least recently used first. Each is two numbers, and takes seconds to compute.
_KEPT: dict[tuple[Any, ...], Optional[Bounds]] = {}
_MOST_KEPT = 256


class Composition:
    """The composition of releases of several mechanisms to the same owners, each with fresh coins."""

    __slots__ = ("_parts", "_owners", "_work", "_handle", "_progress")
    _parts: tuple[tuple[str, int], ...]
    _owners: int
    _work: int
    _handle: _core.Composition
    _progress: Optional[Progress]

    def __init__(
        self, parts: tuple[tuple[str, int], ...], owners: int, work: int = 1, progress: Optional[Progress] = None
    ) -> None:
        handle = _core.Composition(list(parts), owners, work)
        names = ("_parts", "_owners", "_work", "_handle", "_progress")
        for name, value in zip(names, (parts, owners, work, handle, progress)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Composition is frozen: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._parts, self._owners, self._work)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composition) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self._parts, self._owners, self._work))

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        """Each mechanism with the number of its releases."""
        return self._parts

    @property
    def owners(self) -> int:
        """The owners of every release."""
        return self._owners

    @property
    def linked(self) -> Optional[float]:
        """ε of all answers of an owner to all of them; None if there is no guarantee."""
        return self._handle.linked()

    def epsilon(self, delta: Real, *, progress: Optional[Progress] = None) -> Optional[Bounds]:
        """ε of all releases together; None if there is no guarantee.

        The upper end is the claim. Of different mechanisms nothing is proved from below, and the lower end is 0. Results are kept: the
        last 256 of all compositions.

        - ``delta``: the δ at which ε is wanted.
        - ``progress``: is called with the steps that are done, and 0, because nobody knows how many there are. By default the
          function that ``compose`` was given.
        """
        return self._certified("epsilon", _arguments.real("delta", delta), progress)

    def delta(self, epsilon: Real, *, progress: Optional[Progress] = None) -> Optional[Bounds]:
        """δ of all releases together.

        - ``epsilon``: the ε at which δ is wanted.
        - ``progress``: as for ``epsilon()``.
        """
        return self._certified("delta", _arguments.real("epsilon", epsilon), progress)

    def _certified(self, wanted: str, given: float, progress: Optional[Progress]) -> Optional[Bounds]:
        key = (self._parts, self._owners, self._work, wanted, given)
        if key in _KEPT:
            # The dict is in the order of the last use.
            _KEPT[key] = _KEPT.pop(key)
            return _KEPT[key]
        listener = _arguments.listener(self._progress if progress is None else progress)
        ends = (self._handle.epsilon if wanted == "epsilon" else self._handle.delta)(given, listener)
        found = None if ends is None else Bounds(*ends)
        _KEPT[key] = found
        while len(_KEPT) > _MOST_KEPT:
            _KEPT.pop(next(iter(_KEPT)), None)
        return found

    def to_dict(self) -> dict[str, Any]:
        """The mechanisms, the owners and the local ε."""
        return {"parts": [{"mechanism": text, "times": times} for text, times in self._parts], "owners": self._owners}

    def __repr__(self) -> str:
        parts = " + ".join(f"{times} × {text}" for text, times in self._parts)
        return f"Composition({parts}, owners={self._owners})"

    def _repr_html_(self) -> str:
        return table(["mechanism", "times"], [[text, str(times)] for text, times in self._parts])


class LossDistribution:
    """A measure on privacy losses that dominates one release, whichever way an owner's truth changes.

    Every bound on δ that follows from it holds for the release: losses and masses are rounded up.
    """

    __slots__ = ("spacing", "infinity_mass", "_losses", "_masses")
    #: The distance of two losses.
    spacing: float
    #: The mass of infinite loss: no ε has a smaller δ.
    infinity_mass: float
    _losses: tuple[float, ...]
    _masses: tuple[float, ...]

    def __init__(self, spacing: float, losses: tuple[float, ...], masses: tuple[float, ...], infinity_mass: float) -> None:
        names = ("spacing", "_losses", "_masses", "infinity_mass")
        for name, value in zip(names, (spacing, losses, masses, infinity_mass)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"LossDistribution is frozen: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.spacing, self._losses, self._masses, self.infinity_mass)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LossDistribution) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash(self.__reduce__()[1])

    @property
    def losses(self) -> npt.NDArray[np.float64]:
        """The finite losses that have mass, from the smallest; multiples of ``spacing``."""
        import numpy

        return numpy.array(self._losses)

    @property
    def masses(self) -> npt.NDArray[np.float64]:
        """The mass of each loss, rounded up."""
        import numpy

        return numpy.array(self._masses)

    def to_dp_accounting(self, interval: Optional[Real] = None) -> Any:
        """The same as a pessimistic ``PrivacyLossDistribution`` of Google's dp-accounting, which has to be installed.

        - ``interval``: another distance of losses. Distributions that are to be composed with one another need the same; losses are
          rounded up to it. By default, ``spacing``.
        """
        try:
            from dp_accounting.pld import privacy_loss_distribution
        except ImportError:
            raise UptackError("dp-accounting is not installed", "request", "pip install dp-accounting") from None
        step = self.spacing if interval is None else _arguments.real("interval", interval)
        if not 0 < step < float("inf"):
            raise UptackError(f"interval: {step} is not a positive number")
        made = privacy_loss_distribution.PrivacyLossDistribution.create_from_rounded_probability
        return made(self._rounded_up(step), self.infinity_mass, step, pessimistic_estimate=True, symmetric=True)

    def _rounded_up(self, interval: float) -> dict[int, float]:
        """The masses by their losses in whole steps; no step is below its loss, and no sum of masses below the truth."""
        import math
        from fractions import Fraction

        together: dict[int, list[float]] = {}
        step = Fraction(interval)
        for loss, mass in zip(self._losses, self._masses):
            together.setdefault(math.ceil(Fraction(loss) / step), []).append(mass)
        upper = {steps: masses[0] if len(masses) == 1 else math.fsum(masses) * (1 + 2**-50) for steps, masses in together.items()}
        return upper

    def __repr__(self) -> str:
        return f"LossDistribution({len(self._losses)} losses, spacing={self.spacing}, infinity_mass={self.infinity_mass})"
