"""Writes every generated table and picture anew."""

from documentation.blocks import pages, regenerated
from documentation.set_pictures import write_pictures

for page in pages():
    text = page.read_text()
    if (made := regenerated(text)) != text:
        page.write_text(made)
        print(f"{page} is new")
write_pictures()
