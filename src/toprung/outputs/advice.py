"""What to do next, by the rung that failed or by what limits a kernel that passed. Data, not code."""

from __future__ import annotations

AFTER_RUNG = {
    "static": "Write one file that Python can parse and that defines `class ModelNew(torch.nn.Module)` "
    "with the constructor and `forward` of `Model`, or `def kernel(*inputs)`.",
    "compile": "Mend the first error: later ones often follow from it. Nothing else was asked yet.",
    "run": "Where it raises, mend that first: a function is called as kernel(*inputs, **parameters). "
    "Then make one call return what `Model.forward` returns: as many tensors, with the same shapes, types "
    "and device, in memory of their own.",
    "correct": "Compute what the reference computes, for any values: run both on the inputs that are "
    "named above, and compare from the first intermediate result on.",
    "honest": "Compute everything from the inputs of each call, within that call: no cache between "
    "calls, no work left running, no change of inputs, plain tensors as outputs.",
    "sanitize": "Mend the memory error that is named above; bounds and initialisation come first.",
    "bench": "Some timed call was wrong although the first ones were right: look for state that stays "
    "between calls, races between threads, and work that ends after the call has returned.",
    "plausible": "No honest kernel can be that fast: find the work that is skipped, or that is done "
    "before the clock starts or after it stops.",
}

AFTER_FAMILY = {
    "as_given": "It is wrong on ordinary inputs: check the formula, the axis and the indexing first.",
    "heavy_tails": "Large values: subtract the maximum before `exp`, and scale before squaring.",
    "mixed_scales": "Large and small values together: sum in a wider type, or in several partial sums.",
    "large_offset": "A large mean with a small spread: a one-pass variance cancels; subtract the mean "
    "first, or use Welford's update.",
    "position_coded": "Values tell their place: indices are permuted, or a remainder is skipped; check "
    "strides and the last, partial block.",
    "zeros_and_ties": "Zeros and equal values: look at divisions, at starting values of a maximum, and "
    "at which of two equal elements is taken.",
    "special_values": "Infinities and NaN: let them through as the reference does, also in a maximum.",
}

AFTER_BLAME = {
    "task": "This is not the candidate's fault: the task or its reference fails. Mend the task.",
    "harness": "This is not the candidate's fault, and it spends no attempt. Try again; if it comes "
    "back, report it with the text above.",
    "device": "This is not the candidate's fault, and it spends no attempt. Where time ran out, give more "
    "with --timeout or ask less with --no-confirm; `toprung doctor` says what this machine can do.",
}

AFTER_LIMITER = {
    "memory": "Memory bounds this task: read every input once, write every output once, keep what is "
    "needed again in registers or cache, and make accesses wide and contiguous.",
    "compute": "Arithmetic bounds this task: use vector or matrix units, block for registers and cache, "
    "and keep every core busy.",
    "latency": "The work is small beside the cost of a call: fuse steps, start fewer kernels or parallel "
    "regions, and allocate less.",
}
