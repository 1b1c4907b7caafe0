"""Sphinx settings. Nothing is fetched: formulas, fonts and scripts are part of the site."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "examples"), str(HERE)]

import nlilayers

project = "nlilayers"
author = "The nlilayers developers"
copyright = f"2026, {author}"  # noqa: A001 - Sphinx's name
version = release = nlilayers.__version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "gallery", "pictures"]
html_theme = "furo"
html_favicon = "_static/favicon.svg"
html_title = f"nlilayers {version}"
html_static_path = ["_static"]
html_css_files = ["site.css", "gallery.css"]
html_domain_indices = False
nitpicky = False

napoleon_custom_sections = ["Shape"]
napoleon_google_docstring = True
napoleon_use_ivar = True
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
python_use_unqualified_type_names = True
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True}
copybutton_prompt_text = ">>> |\\$ "
myst_enable_extensions = ["dollarmath"]
bibtex_bibfiles = ["papers.bib"]
bibtex_reference_style = "label"
mathjax3_config = {"options": {"enableMenu": False}}

plot_formats = [("png", 160)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_rcparams = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": 160,
    "font.size": 9,
    "legend.frameon": False,
}
plot_apply_rcparams = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "gallery_pages",
    "backreferences_dir": "gallery_pages/of",
    "doc_module": ("nlilayers",),
    "image_scrapers": ("gallery_look.described_figures",),
    "image_srcset": ["2x"],
    "reset_modules": ("matplotlib", "gallery_look.apply"),
    "reference_url": {"nlilayers": None},
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "matplotlib_animations": False,
}
