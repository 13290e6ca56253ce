"""The gold tables of a lake as a page with charts and as text. Reads Delta files; starts no Spark.

Needs the extra: pip install 'headrace[report]'.
"""

from headrace.report.build import Report, build
from headrace.report.gold import Gold, NoGold, read

__all__ = ["Gold", "NoGold", "Report", "build", "read"]
