"""The earlier door to the studies: ``python -m benchmarks.study NAME`` is ``python -m benchmarks NAME``."""

import sys

from benchmarks.command import ALL_STUDIES, WRITE_PAGE, main

if __name__ == "__main__":
    sys.argv = [{"--render": WRITE_PAGE, "all": ALL_STUDIES}.get(word, word) for word in sys.argv]
    main()
