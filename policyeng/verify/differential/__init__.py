"""Whether the engines agree: differential testing on drawn examples."""
