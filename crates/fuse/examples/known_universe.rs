//! Exact membership where all keys that can be asked are known, as certificates and the revoked ones among them: two
//! static functions.
//!
//! `cargo run --release -p warpset-fuse --example known_universe -- 100000000 1000000`
//!
//! The first function is of the members, filtered by a few bits; the second of all keys that pass the first, and says
//! which of them are members. The construction is that of cascades of filters with two levels: Larisch et al.,
//! "CRLite", IEEE Symposium on Security and Privacy, 2017, has Bloom filters and many levels.

use warpset_fuse::{Error, StaticFunction};

/// Exact membership in a known universe.
struct KnownUniverse {
    passes: StaticFunction<bool>,
    is_member: StaticFunction<bool>,
}

impl KnownUniverse {
    /// Builds the set of `members`; `others` are all other keys that will be asked.
    fn new(members: &[u64], others: impl Iterator<Item = u64> + Clone) -> Result<KnownUniverse, Error> {
        let ratio = others.clone().count() as f64 / members.len().max(1) as f64;
        let bits = ratio.log2().round().clamp(1.0, 32.0) as u32;
        let builder = StaticFunction::builder().for_space();
        // One bit less of a fingerprint: the value, always one, filters too.
        let passes = builder.filtered(bits - 1).build_from(members, &vec![true; members.len()])?;
        let mut keys = members.to_vec();
        keys.extend(others.filter(|&key| passes.get(key) == Some(true)));
        let answers: Vec<bool> = (0..keys.len()).map(|i| i < members.len()).collect();
        Ok(KnownUniverse { passes, is_member: builder.build_from(&keys, &answers)? })
    }

    /// Whether a key of the universe is a member.
    fn contains(&self, key: u64) -> bool {
        self.passes.get(key) == Some(true) && self.is_member.get(key) == Some(true)
    }

    fn memory_bytes(&self) -> u64 {
        self.passes.memory_bytes() + self.is_member.memory_bytes()
    }
}

fn main() -> Result<(), Error> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse().expect("a number"));
    let (all, members): (u64, u64) = (numbers.next().unwrap_or(1_000_000), numbers.next().unwrap_or(10_000));
    let every = (all / members.max(1)).max(1);
    let revoked: Vec<u64> = (0..all).step_by(every as usize).collect();
    let start = std::time::Instant::now();
    let universe = KnownUniverse::new(&revoked, (0..all).filter(|key| key % every != 0))?;
    let built = start.elapsed();
    let wrong = (0..all).filter(|&key| universe.contains(key) != (key % every == 0)).count();
    assert_eq!(wrong, 0, "every answer is exact");
    let bits = 8.0 * universe.memory_bytes() as f64 / revoked.len() as f64;
    println!("{} members of {all}: {bits:.2} bits per member, built in {built:.2?}, no answer is wrong", revoked.len());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_exact() {
        let members: Vec<u64> = (0..1000).map(|i| i * 100).collect();
        let universe = KnownUniverse::new(&members, (0..100_000).filter(|key| key % 100 != 0)).unwrap();
        assert!((0..100_000).all(|key| universe.contains(key) == (key % 100 == 0)));
    }
}
