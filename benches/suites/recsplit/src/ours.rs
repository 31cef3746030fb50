//! Our functions under measurement, and how many keys a time limit allows them.

use std::str::FromStr;

use anyhow::{Context, bail};
use warpset_mphf::{Builder, Consensus, Method, Placement, RecSplit, RecSplitKind, Remix, Simd, StaticFilter};

use super::function::{Function, Key, chain};
use bench_frame::clock::Effort;

/// Settings of a function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Keys in a leaf.
    pub leaf: u32,
    /// Expected number of keys in a bucket.
    pub bucket: u32,
    /// Fanouts of the two levels above the leaves, unless they are the method's own.
    pub fanouts: Option<(u32, u32)>,
    /// Method of the search for trial numbers.
    pub method: Method,
    /// Whether with vectors.
    pub simd: Simd,
    /// The finaliser of trial hashes.
    pub remix: Remix,
    /// Keys for each value that the function may take.
    pub load_factor: f64,
    /// Keys that share a value, if any do.
    pub keys_per_value: Option<u32>,
}

const METHODS: [(&str, &str, Method); 3] = [
    ("brute", "brute force", Method::BruteForce),
    ("rotation", "rotation", Method::Rotation),
    ("grouped", "grouped", Method::Grouped),
];

impl Settings {
    /// Makes settings with the processor's vectors.
    pub const fn new(leaf: u32, bucket: u32, method: Method) -> Self {
        let (simd, remix) = (Simd::Auto, Remix::Bits32);
        Self { leaf, bucket, fanouts: None, method, simd, remix, load_factor: 1.0, keys_per_value: None }
    }

    /// Returns these settings without vectors.
    pub const fn sequential(self) -> Self {
        Self { simd: Simd::Sequential, ..self }
    }

    /// Returns the method's name.
    pub fn name(self) -> String {
        let mut name: String = METHODS.iter().find(|method| method.2 == self.method).map_or("", |m| m.1).into();
        if let Some((first, second)) = self.fanouts {
            name += &format!(", fanouts {first}, {second}");
        }
        if self.simd == Simd::Sequential {
            name += ", sequential";
        }
        if self.remix == Remix::Bits64 {
            name += ", 64-bit remix";
        }
        if self.load_factor < 1.0 {
            name += &format!(", load factor {}", self.load_factor);
        }
        if let Some(k) = self.keys_per_value {
            name += &format!(", {k} keys per value");
        }
        name
    }

    /// Returns the builder of these settings.
    pub fn builder(self) -> Builder {
        let mut builder = self.apply(RecSplit::builder()).load_factor(self.load_factor);
        if let Some(k) = self.keys_per_value {
            builder = builder.keys_per_value(k);
        }
        builder
    }

    /// Returns the builder of a filter with these settings.
    pub fn filter_builder(self, width: u32) -> Builder<RecSplitKind, StaticFilter<RecSplitKind>> {
        self.apply(StaticFilter::builder_of_kind(RecSplitKind).width(width))
    }

    fn apply<S>(self, builder: Builder<RecSplitKind, S>) -> Builder<RecSplitKind, S> {
        let builder = builder.leaf_size(self.leaf).bucket_size(self.bucket).method(self.method).simd(self.simd);
        let builder = builder.remix(self.remix);
        match self.fanouts {
            Some((first, second)) => builder.fanouts(first, second),
            None => builder,
        }
    }

    /// Estimates the seconds per key of a build on one thread with AVX2, to choose a number of keys.
    pub fn seconds_per_key(self) -> anyhow::Result<f64> {
        let estimate = self.builder().estimate()?;
        let nanoseconds = match (self.method, self.simd) {
            (_, Simd::Sequential) => 60.0 + 1.2 * estimate.hashes_per_key,
            (Method::Grouped, _) => 1.5 * estimate.nanoseconds_per_key,
            _ => 40.0 + 0.6 * estimate.hashes_per_key,
        };
        Ok(nanoseconds * 1e-9)
    }

    /// Returns the largest of `sizes` that one thread builds within `seconds`, if there is any.
    pub fn affordable(self, sizes: &[usize], seconds: f64) -> anyhow::Result<Option<usize>> {
        let per_key = self.seconds_per_key()?;
        Ok(sizes.iter().copied().filter(|&n| n as f64 * per_key <= seconds).max())
    }
}

impl FromStr for Settings {
    type Err = anyhow::Error;

    /// Parses `METHOD:LEAF:BUCKET`, or that with two fanouts.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let [method, leaf, bucket, ref fanouts @ ..] = parts[..] else { bail!("not METHOD:LEAF:BUCKET") };
        let (.., method) = METHODS.iter().find(|known| known.0 == method).context("brute, rotation or grouped")?;
        let mut settings = Self::new(leaf.parse()?, bucket.parse()?, *method);
        settings.fanouts = match fanouts {
            [] => None,
            [first, second] => Some((first.parse()?, second.parse()?)),
            _ => bail!("two fanouts, or none"),
        };
        settings.builder().shape()?;
        Ok(settings)
    }
}

/// Returns the numbers of keys of generated input.
pub fn sizes(effort: Effort) -> &'static [usize] {
    match effort {
        Effort::Quick | Effort::Standard => &[10_000, 100_000, 1_000_000],
        Effort::Full => &[10_000, 100_000, 1_000_000, 10_000_000],
    }
}

macro_rules! function {
    ($kind:ty, $($numbers:tt)*) => {
        impl<K: Key> Function<K> for $kind {
            fn bits_per_key(&self) -> Option<f64> {
                Some(<$kind>::bits_per_key(self))
            }

            fn list_bits_per_key(&self) -> Option<f64> {
                Some(self.space().buckets as f64 / self.len().max(1) as f64)
            }

            $($numbers)*

            fn each(&self, keys: &[K], numbers: &mut [u64]) {
                keys.iter().zip(numbers).for_each(|(key, number)| *number = self.get(key));
            }

            fn chain(&self, keys: &[K], numbers: &mut [u64]) {
                chain(keys, numbers, |key| self.get(key));
            }

            fn batch(&self, keys: &[K], numbers: &mut [u64]) -> bool {
                self.get_bulk_into(keys, numbers).is_ok()
            }
        }
    };
}
function!(Consensus,);
function!(Placement,);
function!(
    RecSplit,
    fn numbers(&self, _keys: usize) -> (usize, u8) {
        let each = if self.shape().positions() == 1 { self.shape().leaf() as u8 } else { 1 };
        (self.values() as usize, each)
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expensive_shapes_get_fewer_keys() {
        let affordable = |settings: Settings| settings.affordable(sizes(Effort::Quick), 0.5).unwrap();
        assert_eq!(affordable(Settings::new(5, 5, Method::Grouped)), Some(1_000_000));
        assert_eq!(affordable(Settings::new(14, 2000, Method::Rotation)), Some(10_000));
        assert_eq!(affordable(Settings::new(16, 2000, Method::BruteForce).sequential()), None);
    }

    #[test]
    fn shapes_are_read_from_the_command_line() {
        let read = |text: &str| text.parse::<Settings>();
        assert_eq!(read("grouped:8:100").unwrap(), Settings::new(8, 100, Method::Grouped));
        assert_eq!(read("rotation:16:2000:5:3").unwrap().fanouts, Some((5, 3)));
        for bad in ["grouped", "grouped:8", "greedy:8:100", "brute:x:5", "brute:5:5:1", "brute:0:5"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
