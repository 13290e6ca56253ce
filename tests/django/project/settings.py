"""The settings of a Django project, as its own tests and `manage.py` find them."""

import os
from importlib.util import find_spec

SECRET_KEY = "of a test"
USE_TZ = True
INSTALLED_APPS = ["headrace.django", "shop"]
if find_spec("django.tasks") is None:  # before Django 6
    INSTALLED_APPS.append("django_tasks")

STORE = os.environ["SHOP_STORE"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "shop.sqlite3"}}
TASKS = {
    "default": {
        "BACKEND": "headrace.django.HeadraceBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"url": STORE, "max_attempts": int(os.environ.get("SHOP_ATTEMPTS", "1"))},
    }
}
if "SHOP_DATABASE" in os.environ:
    from psycopg.conninfo import conninfo_to_dict

    parts = conninfo_to_dict(os.environ["SHOP_DATABASE"])
    DATABASES["default"] = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts["dbname"],
        "USER": parts.get("user", ""),
        "PASSWORD": parts.get("password", ""),
        "HOST": parts.get("host", ""),
        "PORT": parts.get("port", ""),
    }
    TASKS["default"]["OPTIONS"]["database"] = "default"
