//! What the processor has beyond the least that every one of its architecture has.

/// Whether counting, scanning and shifting bits take one instruction each: BMI1, BMI2, LZCNT and POPCNT. One load, as lookups
/// of single keys ask too.
#[inline]
pub fn has_bit_instructions() -> bool {
    use std::sync::atomic::{AtomicU8, Ordering};
    static KNOWN: AtomicU8 = AtomicU8::new(0);

    #[cold]
    fn find_out() -> bool {
        let has = is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        KNOWN.store(1 + u8::from(has), Ordering::Relaxed);
        has
    }
    match KNOWN.load(Ordering::Relaxed) {
        0 => find_out(),
        known => known == 2,
    }
}
