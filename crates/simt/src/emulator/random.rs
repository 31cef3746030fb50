//! The generator for every choice of the scheduler: wyrand, one multiplication per draw.

#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0xa076_1d64_78bd_642f);
        let wide = u128::from(self.0) * u128::from(self.0 ^ 0xe703_7ed1_a0b4_28db);
        (wide >> 64) as u64 ^ wide as u64
    }

    /// Draws a number below `bound`, which is positive and below 2³².
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        (((self.next() >> 32) * bound as u64) >> 32) as usize
    }

    /// Draws `true` once in `n` draws on average; never for 0.
    #[inline]
    pub fn one_in(&mut self, n: u32) -> bool {
        n != 0 && self.below(n as usize) == 0
    }
}
