"""The methods as their authors' published code runs them: every difference from the text, alone and all together.

    python -m feasible.paper.as_authors        # which departures there are, and of which method on which task
    python -m feasible.paper.as_authors --train nsfnet ddpg-optlayer --departures mirrored

`as_authors(task, algo)` has all departures of a method on a task, `departures(task, algo)` one at a time, both from
the `paper` settings; `run_config` makes runs of them. The core carries no trace of them: an algorithm here is one of
the core's with one field a departure, and with none of them set it is the core's, bit for bit.

The code also does what the text says (batches of 16 and 64, OptLayer's actor every 50 steps, every update of NSFNET
every 50: the `paper` settings) and some things that make no difference: soft updates before the critic's step instead
of after the last one are the same sequence, BSS-3 has no terminations that its lacking mask could miss, its table has
120 cells more which no state reaches, and our linear maximisation over allocations has integer answers too. Readings,
where the facts leave a choice: the index that fills the odd observation of BSS-3 counts from the least allocation,
and the action in OptLayer's critic target is projected as when acting, not mirrored.
"""

from feasible.paper.as_authors.algorithms import AuthorsDDPG as AuthorsDDPG
from feasible.paper.as_authors.algorithms import AuthorsProjection as AuthorsProjection
from feasible.paper.as_authors.algorithms import AuthorsTable as AuthorsTable
from feasible.paper.as_authors.departures import DEPARTURES as DEPARTURES
from feasible.paper.as_authors.departures import Departure as Departure
from feasible.paper.as_authors.departures import as_authors as as_authors
from feasible.paper.as_authors.departures import departures as departures
from feasible.paper.as_authors.departures import is_known as is_known
from feasible.paper.as_authors.departures import run_config as run_config
