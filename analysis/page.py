"""Pages that need no network, from templates/."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_TEMPLATES = Path(__file__).parent / "templates"


def write(folder: Path, name: str, context: dict[str, Any]) -> Path:
    """`folder`/<name>.html from its template, replaced whole; returns its path. A name nobody gave is an error."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = environment.get_template(f"{name}.html.j2").render(context)
    path, fresh = folder / f"{name}.html", folder / f"{name}.html.new"
    fresh.write_text(html)
    fresh.replace(path)
    return path
