"""`feasible report`: a page, figures and tables from run folders."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

if TYPE_CHECKING:
    from feasible.report.writing import Report


def report(runs: Annotated[str, tyro.conf.Positional], out: Path = Path("report")) -> None:
    """Write a page, figures and tables from run folders.

    Nothing is trained. The page shows films and pictures from the runs' folders.

    Args:
        runs: Folder of the runs, or an address that fsspec knows.
        out: Folder for index.html, figures/ and tables/.
    """
    from feasible.report.writing import write_report
    from feasible.run.sweep.remote import fetched

    with fetched(runs) as folder:
        tell(write_report(folder, out))


def tell(written: "Report") -> None:
    """Say what was left out of a report, and where its page is."""
    for note in written.notes:
        print(f"{'Left out: ' if note.left_out else ''}{note.about} {note.says}.")
    print(f"Report of {written.runs} runs: {written.page}")
