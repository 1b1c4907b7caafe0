"""Sphinx settings."""

import nlilayers

project = "nlilayers"
author = "The nlilayers developers"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx's name
version = release = nlilayers.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"nlilayers {version}"
nitpicky = False
napoleon_custom_sections = ["Shape"]
napoleon_google_docstring = True
napoleon_use_ivar = True
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "show-inheritance": False}
copybutton_prompt_text = ">>> |\\$ "
myst_enable_extensions = ["dollarmath"]
