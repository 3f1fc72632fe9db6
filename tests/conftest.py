"""Fixtures that several packages' tests share."""

pytest_plugins = ["tests.fixtures.postgres"]
