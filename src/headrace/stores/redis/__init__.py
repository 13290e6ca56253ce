"""The Redis store: one server (Redis 7 or newer, or Valkey), many hosts, the lowest latency."""

from headrace.stores.redis.schema import SCHEMA_VERSION
from headrace.stores.redis.store import RedisStore

__all__ = ["SCHEMA_VERSION", "RedisStore"]
