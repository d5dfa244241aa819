"""Recipes, as people write them: ``variants/NAME.yaml`` and ``overlays/NAME/overlay.yaml``."""

from builder.recipe.known import Known
from builder.recipe.overlays import OVERLAY_FILE, read_overlay
from builder.recipe.variants import read_variant

__all__ = ["OVERLAY_FILE", "Known", "read_overlay", "read_variant"]
