//! Settings of filters.

use std::fmt;
use std::marker::PhantomData;

use crate::build::{self, Settings};
use crate::width::Width;
use crate::{Arity, BinaryFuse, Error, External, Form, Key, Layout};

/// Declares the setters that builders of filters and of functions share.
macro_rules! graph_setters {
    () => {
        /// Sets the number of slots per key. Default: [`Arity::Three`].
        pub fn arity(mut self, arity: Arity) -> Self {
            self.settings.arity = arity;
            self
        }

        /// Sets the form: one graph or many. Default: [`Form::OneGraph`].
        pub fn form(mut self, form: Form) -> Self {
            self.settings.form = form;
            self
        }

        /// Takes the form with the fewest bits per key: one graph, four-wise.
        pub fn for_space(self) -> Self {
            self.arity(Arity::Four).form(Form::OneGraph)
        }

        /// Takes the form that is built fastest, on many cores and on devices: sharded, three-wise.
        pub fn for_build(self) -> Self {
            self.arity(Arity::Three).form(Form::Sharded)
        }

        /// Sets the first seed of the keys' hash. Default: 0.
        pub fn seed(mut self, seed: u64) -> Self {
            self.settings.seed = seed;
            self
        }
    };
}
pub(crate) use graph_setters;

/// Settings of a [`BinaryFuse`]; each setter states its default.
///
/// ```
/// use warpset_fuse::{Arity, BinaryFuse16, Form};
///
/// let keys: Vec<u64> = (0..100_000).collect();
/// let smallest = BinaryFuse16::builder().for_space().build_from(&keys)?;
/// let sharded = BinaryFuse16::builder().form(Form::Sharded).build_from(&keys)?;
/// assert!(smallest.layout().arity() == Arity::Four && smallest.memory_bytes() < sharded.memory_bytes());
/// # Ok::<(), warpset_fuse::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct Builder<F> {
    settings: Settings,
    fpr: Option<f64>,
    width: PhantomData<F>,
}

impl<F: Width> Builder<F> {
    pub(crate) fn new() -> Builder<F> {
        let settings = Settings::new(F::BITS, 0);
        Builder { settings, fpr: None, width: PhantomData }
    }

    /// Sets the highest rate of false positives: an error if fingerprints of this width have a higher one
    /// ([`bits_for`](crate::bits_for) returns a width that does not). Default: that of the width.
    pub fn fpr(mut self, fpr: f64) -> Self {
        self.fpr = Some(fpr);
        self
    }

    graph_setters!();

    /// Checks every setting.
    pub(crate) fn settings(&self) -> Result<Settings, Error> {
        match self.fpr {
            Some(fpr) if fpr.is_nan() || fpr <= 0.0 || fpr >= 1.0 => Err(Error::InvalidFpr { fpr }),
            Some(fpr) if fpr < (-f64::from(F::BITS)).exp2() => Err(Error::UnreachableFpr { fpr, bits: F::BITS }),
            _ => Ok(self.settings),
        }
    }

    /// Returns the parameters of a filter of `keys` different keys if the first seed succeeds; the number of words is
    /// the same for every seed.
    ///
    /// ```
    /// use warpset_fuse::BinaryFuse8;
    ///
    /// let words = |keys: u64| BinaryFuse8::builder().layout(keys).map(|layout| layout.words());
    /// assert!(64 * words(100_000_000)? < 910_000_000);
    /// assert!(64 * words(100)? > 1_300); // a Bloom filter of that rate takes fewer
    /// # Ok::<(), warpset_fuse::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidFpr`], [`Error::UnreachableFpr`], [`Error::TooManyKeys`].
    pub fn layout(&self, keys: u64) -> Result<Layout, Error> {
        self.settings()?.layout(keys, 0)
    }

    /// Returns the filter of these keys, on all threads of the current rayon pool; equal keys count once. The bytes
    /// follow from the settings and the set of keys, whatever their order and the number of threads.
    ///
    /// Memory for a time: some 23 bytes per key for one graph, at most 12 sharded; 8 more for keys that are no integers
    /// of up to 64 bits, or if keys are equal.
    ///
    /// # Errors
    /// The errors of [`Builder::layout`]; [`Error::OutOfMemory`]; [`Error::NoSeed`] for [`Hashed`](crate::Hashed) keys
    /// that are not random, and otherwise never in practice.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<BinaryFuse<F>, Error> {
        let (layout, words) = build::build::<F, _>(&self.settings()?, &build::Keys(keys))?;
        Ok(BinaryFuse::from_parts(layout, words))
    }

    /// Returns a build of a sharded filter from keys that need not fit in memory.
    pub fn external(&self) -> External<F> {
        External::new(*self)
    }
}

impl<F: Width> fmt::Debug for Builder<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("Builder");
        f.field("bits", &F::BITS).field("settings", &self.settings).field("fpr", &self.fpr).finish()
    }
}
