"""A run or a defender as one page, an episode as a story.

The public function ``workflow_rl.report(policy)`` has the name of this folder, so the folder can be called; see
:func:`workflow_rl.report.build.report_defender`.
"""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Path:
        from workflow_rl.report.build import report_defender

        return report_defender(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
report = sys.modules[__name__]
