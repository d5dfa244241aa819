"""Superseded by marlin."""
