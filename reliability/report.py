"""The pages of ``docs/reliability``, from what the attacks wrote."""

import importlib
import json
from pathlib import Path

from nli_common.files import write_text

HERE = Path(__file__).parent
PAGES = HERE.parent / "docs" / "reliability"


def measured() -> list[Path]:
    """What the attacks wrote when they were over, a file each."""
    return sorted(path for path in HERE.glob("*.json") if not path.name.endswith(".partial.json"))


def written(path: Path) -> str:
    """The page of one attack: the sections that its module writes, its first heading the page's title."""
    attack = path.stem.partition("-")[0]  # of precision-cuda, too
    page: str = importlib.import_module(f"reliability.{attack}").page(json.loads(path.read_text()))
    return "\n".join(line[1:] if line.startswith("##") else line for line in page.splitlines()) + "\n"


def main() -> None:
    """Write every page."""
    for path in measured():
        write_text(PAGES / f"{path.stem}.md", written(path))


if __name__ == "__main__":
    main()
