//! Scalars as bit patterns, and what an atomic does to one.

pub trait Word: Copy + 'static {}

/// A word that fits into 64 bits.
pub trait Bits: Word {
    fn to_bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
}

macro_rules! word {
    ($($ty:ty, $unsigned:ty;)*) => {$(
        impl Word for $ty {}
        impl Bits for $ty {
            #[inline]
            fn to_bits(self) -> u64 {
                self as $unsigned as u64
            }
            #[inline]
            fn from_bits(bits: u64) -> Self {
                bits as $ty
            }
        }
    )*};
}

word! { u8, u8; i8, u8; u16, u16; i16, u16; u32, u32; i32, u32; u64, u64; i64, u64; }

impl Word for f32 {}
impl Bits for f32 {
    fn to_bits(self) -> u64 {
        u64::from(f32::to_bits(self))
    }
    fn from_bits(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
}

impl Word for f64 {}
impl Bits for f64 {
    fn to_bits(self) -> u64 {
        f64::to_bits(self)
    }
    fn from_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }
}

impl Word for u128 {}

/// A word that lanes exchange, 64 bits at a time.
pub trait ShuffleWord: Word {
    /// Returns the low half, and the high one, which is 0 for words of at most 8 bytes.
    fn to_halves(self) -> [u64; 2];
    fn from_halves(halves: [u64; 2]) -> Self;
}

macro_rules! shuffle_word {
    ($($ty:ty)*) => {$(
        impl ShuffleWord for $ty {
            #[inline]
            fn to_halves(self) -> [u64; 2] {
                [Bits::to_bits(self), 0]
            }
            #[inline]
            fn from_halves([low, _]: [u64; 2]) -> Self {
                <Self as Bits>::from_bits(low)
            }
        }
    )*};
}

shuffle_word! { u32 i32 u64 i64 f32 f64 }

impl ShuffleWord for u128 {
    #[inline]
    fn to_halves(self) -> [u64; 2] {
        [self as u64, (self >> 64) as u64]
    }
    #[inline]
    fn from_halves([low, high]: [u64; 2]) -> Self {
        u128::from(high) << 64 | u128::from(low)
    }
}

pub trait MatchWord: Bits {}

/// A read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modify {
    Add,
    And,
    Or,
    Xor,
    Min,
    Max,
    Exchange,
}

pub trait AtomicWord: Bits {
    /// Returns the word after `op` with `operand`.
    fn modify(self, op: Modify, operand: Self) -> Self;
}

macro_rules! atomic_word {
    ($($ty:ty)*) => {$(
        impl MatchWord for $ty {}
        impl AtomicWord for $ty {
            #[inline]
            fn modify(self, op: Modify, operand: Self) -> Self {
                match op {
                    Modify::Add => self.wrapping_add(operand),
                    Modify::And => self & operand,
                    Modify::Or => self | operand,
                    Modify::Xor => self ^ operand,
                    Modify::Min => self.min(operand),
                    Modify::Max => self.max(operand),
                    Modify::Exchange => operand,
                }
            }
        }
    )*};
}

atomic_word! { u32 i32 u64 i64 }
