"""A profile: one link, as a YAML file in profiles/ or a user's own, parsed into a Netem."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from testbed.netem import Netem
from testbed.schema import Duration, Percent, Rate, Strict, find, read_yaml

FOLDER = Path(__file__).resolve().parent.parent / "profiles"


class Chance(Strict):
    """A share of packets, and its correlation with the packet before."""

    probability: Percent
    correlation: Percent = 0


class Reorder(Chance):
    """Packets sent at once instead of after the delay; with gap N only every Nth packet is a candidate."""

    gap: int = Field(0, ge=0)


class LossState(Strict):
    """netem's 4-state Markov loss model (tc-netem(8))."""

    p13: Percent
    p31: Percent
    p32: Percent = 0
    p23: Percent = 100 * 10**6
    p14: Percent = 0


class LossGemodel(Strict):
    """Gilbert-Elliott loss: chance to turn bad (p) and good (r), loss when bad (1-h) and when good (1-k)."""

    p: Percent
    r: Percent
    one_minus_h: Percent = Field(100 * 10**6, alias="1-h")
    one_minus_k: Percent = Field(0, alias="1-k")


class Loss(Strict):
    """Exactly one of netem's three loss models."""

    random: Percent | None = None
    correlation: Percent = 0
    state: LossState | None = None
    gemodel: LossGemodel | None = None

    @model_validator(mode="after")
    def _one_model(self) -> "Loss":
        if sum(model is not None for model in (self.random, self.state, self.gemodel)) != 1:
            raise ValueError("allowed is exactly one of random, state, gemodel")
        if self.correlation and self.random is None:
            raise ValueError("correlation is allowed with random only")
        return self


class ProfileFile(Strict):
    """The keys of a profile's YAML. What is left out, the link does not do."""

    description: str
    source: str
    limit: int = Field(ge=1, le=2**32 - 1)
    rate: Rate | None = None
    delay: Duration = 0
    jitter: Duration = 0
    delay_correlation: Percent = 0
    distribution: Literal["uniform", "normal", "pareto", "paretonormal", "experimental"] = "uniform"
    loss: Loss | None = None
    reorder: Reorder | None = None
    duplicate: Chance | None = None
    corrupt: Chance | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        wide = dict(data)
        for key, inner in (
            ("loss", "random"),
            ("reorder", "probability"),
            ("duplicate", "probability"),
            ("corrupt", "probability"),
        ):
            if key in wide and not isinstance(wide[key], dict):
                wide[key] = {inner: wide[key]}
        return wide

    @model_validator(mode="after")
    def _what_netem_needs(self) -> "ProfileFile":
        if (self.delay_correlation or self.distribution != "uniform") and not self.jitter:
            raise ValueError("delay_correlation and distribution are allowed with a jitter only")
        if self.reorder and not self.delay:
            raise ValueError("reorder is allowed with a delay only")
        return self


@dataclass(frozen=True)
class Profile:
    """A link with its name and where its figures come from."""

    name: str
    file: str
    description: str
    source: str
    netem: Netem


def _loss(loss: Loss | None) -> dict[str, Any]:
    if loss is None:
        return {}
    if loss.state is not None:
        return {"loss_state": loss.state.model_dump()}
    if loss.gemodel is not None:
        return {"loss_gemodel": loss.gemodel.model_dump(by_alias=True)}
    return {"loss": loss.random, "loss_correlation": loss.correlation}


def _netem(file: ProfileFile) -> Netem:
    settings = _loss(file.loss)
    for name in ("reorder", "duplicate", "corrupt"):
        chance: Chance | None = getattr(file, name)
        if chance is not None:
            settings |= {name: chance.probability, f"{name}_correlation": chance.correlation}
    return Netem(
        limit=file.limit,
        delay=file.delay,
        jitter=file.jitter,
        delay_correlation=file.delay_correlation,
        distribution=file.distribution,
        gap=file.reorder.gap if file.reorder else 0,
        rate=file.rate or 0,
        **settings,
    )


def load(name: str) -> Profile:
    """The profile called `name`, or of the file at that path. Raises UserError."""
    path = find("profile", FOLDER, name)
    file = read_yaml(path, ProfileFile)
    return Profile(path.stem, str(path), file.description, file.source, _netem(file))


def load_all() -> list[Profile]:
    """The profiles that come with the project, the least constrained link first."""
    profiles = [load(path.stem) for path in FOLDER.glob("*.yaml")]
    return sorted(profiles, key=lambda profile: -(profile.netem.rate or 10**12))
