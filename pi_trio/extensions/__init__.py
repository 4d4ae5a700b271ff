"""Extensions: Python modules with one function `extend(api)`. See docs/extensions.md."""

from pi_trio.extensions.api import ExtensionApi as ExtensionApi
