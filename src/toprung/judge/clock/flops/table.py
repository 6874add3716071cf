"""All formulas together, and the operators that only move, select, convert or generate data."""

from __future__ import annotations

from .call import Call, Flops, words
from .elementwise import elementwise
from .products import PRODUCTS
from .reductions import REDUCTIONS

FREE = words("""
    _assert_async _assert_scalar _conj _copy_from _local_scalar_dense _neg_view
    _pack_padded_sequence _pad_packed_sequence _pin_memory _reshape_alias _resize_output
    _to_copy _unsafe_index _unsafe_masked_index _unsafe_view _upsample_nearest_exact1d
    _upsample_nearest_exact2d _upsample_nearest_exact3d alias arange as_strided
    as_strided_scatter bernoulli broadcast_tensors broadcast_to cat cauchy channel_shuffle
    chunk clone complex conj constant_pad_nd contiguous copy detach detach_copy diag_embed
    diagonal diagonal_copy diagonal_scatter embedding empty empty_like empty_permuted
    empty_strided equal expand expand_copy exponential eye fill flatten flip full full_like
    gather geometric hstack im2col imag index index_copy index_fill index_select is_nonzero
    is_same_size item lift lift_fresh lift_fresh_copy linspace log_normal logspace
    masked_fill masked_scatter masked_select max_unpool2d max_unpool3d meshgrid moveaxis
    movedim multinomial narrow native_channel_shuffle new_empty new_empty_strided new_full
    new_ones new_zeros normal one_hot ones ones_like permute pixel_shuffle pixel_unshuffle
    put rand rand_like randint randint_like randn randn_like random randperm real
    reflection_pad1d reflection_pad2d reflection_pad3d repeat repeat_interleave
    replication_pad1d replication_pad2d replication_pad3d reshape resize resize_as
    resolve_conj resolve_neg roll rot90 scalar_tensor select select_backward select_scatter
    set set_ slice slice_backward slice_scatter split split_with_sizes squeeze stack
    sym_numel sym_size sym_storage_offset sym_stride t take take_along_dim tensor_split tile
    to transpose tril tril_indices triu triu_indices unbind unflatten unfold uniform
    unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze upsample_nearest1d
    upsample_nearest2d upsample_nearest3d view view_as_complex view_as_real view_copy where
    zero zeros zeros_like
    """)


def flops_of(call: Call) -> Flops | None:
    """Flops of one call, or `None` when a floating-point operator has no formula here."""
    if call.namespace not in ("aten", "prims", "prim"):
        return None if call.is_floating else Flops()
    formula = PRODUCTS.get(call.name)
    if formula is not None:
        return _complex_products(call, formula(call))
    if not call.is_floating or call.name in FREE:
        return Flops()
    formula = REDUCTIONS.get(call.name)
    if formula is not None:
        return formula(call)
    return elementwise(call)


def _complex_products(call: Call, flops: Flops) -> Flops:
    """A complex multiply-add is four real ones."""
    is_complex = any(t.dtype.is_complex for t in call.inputs)
    return Flops(product=4 * flops.product, other=2 * flops.other) if is_complex else flops
