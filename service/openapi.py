"""The committed OpenAPI document: `python -m service.openapi > docs/openapi.json`."""

from __future__ import annotations

import json
import sys

from kernel_gen.lifetime.scratch import Scratch
from service.app import create_app
from service.document import describe
from service.settings import Settings


def openapi_text() -> str:
    """The document of the current code, as it is committed."""
    with Scratch("openapi") as folder:
        app = create_app(Settings(db=f"sqlite:///{folder}/store.db"))
        try:
            return json.dumps(describe(app), indent=1, sort_keys=True) + "\n"
        finally:
            app.state.context.store.close()


if __name__ == "__main__":
    sys.stdout.write(openapi_text())
