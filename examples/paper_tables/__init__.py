"""The papers' tables of results, as rows that can be trained again."""
