"""Calls everything that the stubs declare with random arguments, and reports what must not happen::

    TECTUM_PYTHON_CALLS=20000 TECTUM_SEED=7 python tests/random_calls

Each child process makes sequences of calls. A call may raise an exception, but a child must not be
killed by a signal, hang, panic, or need more and more memory. A call that takes long is interrupted
by a signal, as by Ctrl-C; one that does not end then is a hang. The address space of a child is
limited, so that a request that is too large is refused before it fills the machine.

A finding is printed as a script: `python tests/random_calls --script FILE` makes its calls.
"""

import json
import pathlib
import sys

import child
import parent

if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child.run(json.loads(sys.argv[2]))
    elif sys.argv[1:2] == ["--script"]:
        sys.exit(parent.run_script(pathlib.Path(sys.argv[2])))
    else:
        sys.exit(parent.main())
