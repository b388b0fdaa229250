"""Writes every generated table anew and, on request, every picture of a set or a task and every figure of results."""

import argparse
from pathlib import Path

from documentation.benchmark_figure import write_benchmark_figure
from documentation.blocks import regenerated
from documentation.field_tasks import write_task_pictures
from documentation.marked import pages
from documentation.results import add_results, write_figures
from documentation.set_pictures import write_pictures

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--add", type=Path, nargs="+", default=[], metavar="RUNS", help="folders of runs to publish first")
parser.add_argument("--figures", action="store_true", help="also draw the figures of the results")
parser.add_argument("--pictures", action="store_true", help="also draw the sets and the tasks, which takes a minute")
arguments = parser.parse_args()
for folder in arguments.add:
    add_results(folder)
for page in pages():
    text = page.read_text()
    if (made := regenerated(text)) != text:
        page.write_text(made)
        print(f"{page} is new")
if arguments.figures or arguments.add:
    write_figures()
    write_benchmark_figure()
if arguments.pictures:
    write_pictures()
    write_task_pictures()
