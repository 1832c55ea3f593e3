"""Strict reading of YAML: unknown keys, wrong units and wrong values are errors that name file, key, value, allowed."""

from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from testbed import units
from testbed.errors import UserError

Rate = Annotated[int, BeforeValidator(units.rate)]
Duration = Annotated[int, BeforeValidator(units.duration)]
Size = Annotated[int, BeforeValidator(units.size)]
Percent = Annotated[int, BeforeValidator(units.percent)]


class Strict(BaseModel):
    """A mapping whose keys are all known and whose values are not coerced."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Model = TypeVar("Model", bound=BaseModel)


def _allowed(error: Any, model: type[BaseModel]) -> str:
    if error["type"] == "extra_forbidden":
        known: Any = model
        for part in error["loc"][:-1]:
            fields = getattr(known, "model_fields", {})
            known = fields[part].annotation if part in fields else None
        names = getattr(known, "model_fields", None)
        keys = [info.alias or name for name, info in names.items()] if names else []
        return f"unknown key; allowed are {', '.join(keys)}" if keys else "unknown key"
    message = str(error["msg"]).removeprefix("Value error, ")
    return message if "allowed" in message else f"{message[0].lower()}{message[1:]}"


def explain(error: ValidationError, where: str, model: type[BaseModel]) -> str:
    """The first of pydantic's errors as one line: where, key, value, what is allowed."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    value = "" if first["type"] == "missing" else f"{first['input']!r}: "
    more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
    return f"{where}: {key}: {value}{_allowed(first, model)}{more}"


def _mapping(path: Path) -> dict[str, Any]:
    try:
        data = yaml.safe_load(path.read_text())
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        raise UserError(f"{path}: not YAML: {problem}") from error
    if not isinstance(data, dict):
        raise UserError(f"{path}: allowed is a mapping of keys to values, not {type(data).__name__}")
    return data


def _over(base: Any, own: Any) -> Any:
    """`own` put over `base`, mapping by mapping."""
    if not (isinstance(base, dict) and isinstance(own, dict)):
        return own
    return base | {key: _over(base.get(key), value) for key, value in own.items()}


def read_yaml(path: Path, model: type[Model]) -> Model:
    """Read one file into `model`; `extends: NAME` takes from NAME.yaml beside it what the file does not say itself.

    Raises UserError with one line.
    """
    data = _mapping(path)
    if "extends" in data:
        name = data.pop("extends")
        if not isinstance(name, str):
            raise UserError(f"{path}: extends: {name!r}: allowed is the name of a file beside it, without .yaml")
        data = _over(_mapping(path.parent / f"{name}.yaml"), data)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise UserError(explain(error, str(path), model)) from error


def find(kind: str, folder: Path, name: str) -> Path:
    """The file of `name`: one that comes with the project, or a path to the user's own (it has a / or ends in .yaml)."""
    if "/" in name or name.endswith((".yaml", ".yml")):
        return Path(name)
    path = folder / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in folder.glob("*.yaml")))
        raise UserError(f"{kind.upper()}: {name!r}: no such {kind}; allowed are {known}, or the path of a YAML file")
    return path
