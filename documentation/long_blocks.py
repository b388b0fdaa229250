"""Runs the code blocks that the tests only shorten or check, as they are written; each page in a folder of its own."""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from documentation.code_blocks import Block, blocks_of
from documentation.marked import ROOT, pages


def run_page(blocks: list[Block], folder: Path) -> None:
    """All python blocks as one program, then the commands one after another, in the given folder."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    program = "\n".join(block.code for block in blocks if block.language == "python" and not block.raises)
    subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, check=True)
    for block in blocks:
        if block.language == "bash":
            place = ROOT if "make " in block.code else folder
            subprocess.run(["bash", "-euc", block.code], cwd=place, env=environment, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="only these; all that have a long block if none is named")
    wanted = {path.resolve() for path in parser.parse_args().pages}
    for page in pages():
        blocks = blocks_of(page)
        if page in wanted or (
            not wanted and any(block.mark.startswith(("short", "long", "needs")) for block in blocks)
        ):
            print(f"{page.relative_to(ROOT)} ...", flush=True)
            with tempfile.TemporaryDirectory() as folder:
                run_page(blocks, Path(folder))


if __name__ == "__main__":
    main()
