"""``python -m workflow_rl.cli``."""

from workflow_rl.cli import main

main()
