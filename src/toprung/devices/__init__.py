"""What kernels run on: detection, data-sheet peaks, the hardware report. Nothing here measures."""
