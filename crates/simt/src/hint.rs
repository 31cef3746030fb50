//! Helpers for the optimiser.

/// Hides the value of `x` from LLVM, at no cost at run time.
///
/// Use it where LLVM's rewriting of bit arithmetic costs an instruction that the
/// PTX assembler would have saved. On the host it is the identity.
#[inline(always)]
#[must_use]
pub fn opaque(x: u32) -> u32 {
    crate::target::opaque(x)
}

/// Returns the upper half of the product of `x` and `y`, in one instruction.
///
/// `(x as u64 * y as u64) >> 32` takes more instructions where LLVM moves the conversion of a factor out of a loop: it
/// does not see then that the upper half of that factor is zero.
#[inline(always)]
#[must_use]
pub fn multiply_high(x: u32, y: u32) -> u32 {
    crate::target::multiply_high(x, y)
}

/// Repeats a block as straight-line code: `unroll!(8, i, { … })`, `i: usize` counting from 0.
///
/// For register arrays, which must not be indexed at run time. The count is one of
/// the literals 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32; no `break` or `continue` out of the block.
#[macro_export]
macro_rules! unroll {
    (1, $i:ident, $b:block) => { $crate::unroll!(@ $i, $b, 0) };
    (2, $i:ident, $b:block) => { $crate::unroll!(@ $i, $b, 0 1) };
    (3, $i:ident, $b:block) => { $crate::unroll!(@ $i, $b, 0 1 2) };
    (4, $i:ident, $b:block) => { $crate::unroll!(@ $i, $b, 0 1 2 3) };
    (5, $i:ident, $b:block) => { $crate::unroll!(@ $i, $b, 0 1 2 3 4) };
    (6, $i:ident, $b:block) => { $crate::unroll!(@ $i, $b, 0 1 2 3 4 5) };
    (7, $i:ident, $b:block) => { $crate::unroll!(@ $i, $b, 0 1 2 3 4 5 6) };
    (8, $i:ident, $b:block) => { $crate::unroll!(@ $i, $b, 0 1 2 3 4 5 6 7) };
    (12, $i:ident, $b:block) => { $crate::unroll!(@ $i, $b, 0 1 2 3 4 5 6 7 8 9 10 11) };
    (16, $i:ident, $b:block) => { $crate::unroll!(@ $i, $b, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15) };
    (24, $i:ident, $b:block) => {
        $crate::unroll!(@ $i, $b, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23)
    };
    (32, $i:ident, $b:block) => {
        $crate::unroll!(@ $i, $b, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
            16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    (@ $i:ident, $b:block, $($k:literal)*) => {{ $( { let $i: usize = $k; $b } )* }};
}
