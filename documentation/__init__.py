"""What makes and checks the documentation: tables and pictures from the code, and the code blocks of the pages.

    python -m documentation                 # write the generated tables into docs/ anew (--figures, --pictures)
    python -m documentation --add RUNS ...  # the results of run folders first into results/, and their figures
    python -m documentation.long_blocks     # run the code blocks that the tests shorten, as they are written

The pages themselves are Markdown in `docs/`; `make docs` builds the site from them.
"""
