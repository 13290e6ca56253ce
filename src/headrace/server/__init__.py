"""The HTTP server: `create_app(url)` is an ASGI application over a store. Needs headrace[server]."""

from headrace.server.access import Access
from headrace.server.application import Application, create_app
from headrace.server.service import Bounds, Service

__all__ = ["Access", "Application", "Bounds", "Service", "create_app"]
