"""The study's pages, a module for each, from what is kept of its runs."""
