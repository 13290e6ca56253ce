"""The dashboard: pages over a store, served beside the API. Needs headrace[server].

create_app("sqlite:///jobs.db", pages=headrace.dashboard.pages)
"""

from headrace.dashboard.routes import pages

__all__ = ["pages"]
