"""The result that is published, which estimates are made from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Mapping, Optional

from . import _arguments
from ._errors import UptackError
from ._result import AboutMechanism

if TYPE_CHECKING:
    from ._arguments import Exact, Interval
    from ._channel import Channel, Estimate


class Published(AboutMechanism):
    """What is published about a crowd, once: ``Channel.publish`` makes it, and estimates are made from it.

    Noise is drawn when the result is published and never again: fresh noise for every estimate would average out, and would be no
    protection. So keep it: ``to_json`` and ``from_json``.
    """

    __slots__ = ()

    @property
    def channel(self) -> Channel:
        """The channel by which the owners answered."""
        from ._channel import Channel

        return Channel(self.mechanism)

    @property
    def sum(self) -> Optional[int]:
        """The number of answers 1 plus both aggregators' noise; None if the mechanism has no noise."""
        return None if self.tally is not None else int(self._document["sums"][0])

    @property
    def tally(self) -> Optional[dict[str, Any]]:
        """For each answer, how often each output was given; None if the mechanism has noise."""
        if "answers" not in self._document:
            return None
        return {"answers": self.to_dict()["answers"], "owners": self.owners}

    def estimate(self, *, confidence: Exact = 0.95, interval: Interval = "auto") -> Estimate:
        """Estimates the number of yes-owners.

        - ``confidence``: how sure the interval is to contain the truth.
        - ``interval``: its kind; see ``Channel.estimate``.
        """
        return self.channel.estimate(self, confidence=confidence, interval=interval)

    def to_json(self) -> str:
        """The result as text, with its mechanism."""
        return json.dumps(self._document)

    @classmethod
    def from_json(cls, text: str) -> Published:
        """The result that ``to_json`` wrote.

        - ``text``: a document of JSON.
        """
        try:
            document = json.loads(_arguments.word("text", text))
        except ValueError as error:
            raise UptackError(f"not a published result: {error}", "input") from None
        return cls.from_dict(document)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Published:
        """The result that ``to_dict`` returned.

        - ``document``: a dict with ``mechanism``, ``owners``, and ``sums`` or ``answers``.
        """
        from ._channel import Channel, plain_tally, whole_sum

        if not isinstance(document, Mapping) or not {"mechanism", "owners"} <= set(document):
            raise UptackError("not a published result", "input", "it has a mechanism, owners, and sums or answers")
        channel = Channel(_arguments.word("mechanism", document["mechanism"]))
        checked: dict[str, Any] = {"mechanism": channel.mechanism, "owners": _arguments.whole("owners", document["owners"], 1)}
        if (channel.noise is None) != ("answers" in document):
            raise UptackError("not a result of this mechanism: with noise there are sums, without noise answers", "input")
        if channel.noise is None:
            checked["answers"] = plain_tally(document)["answers"]
        elif not isinstance(document.get("sums"), (list, tuple)) or len(document["sums"]) != 1:
            raise UptackError("sums: expected a list of one number", "input")
        else:
            checked["sums"] = [whole_sum(document["sums"][0])]
        return cls(checked)

    def _shown(self) -> list[tuple[str, str]]:
        shown = [("mechanism", self.mechanism), ("owners", str(self.owners))]
        return [*shown, ("sum", str(self.sum)) if self.tally is None else ("answers", str(self._document["answers"]))]
