"""What two cards with 24 GB each are run with."""

TENSOR_PARALLEL_SIZE = 2
GPU_MEMORY_UTILIZATION = 0.85
