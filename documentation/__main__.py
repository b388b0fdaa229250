"""Writes every generated table anew and, with `--pictures`, every picture of a set."""

import argparse

from documentation.blocks import pages, regenerated
from documentation.set_pictures import write_pictures

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--pictures", action="store_true", help="also draw the sets, which takes a minute")
arguments = parser.parse_args()
for page in pages():
    text = page.read_text()
    if (made := regenerated(text)) != text:
        page.write_text(made)
        print(f"{page} is new")
if arguments.pictures:
    write_pictures()
