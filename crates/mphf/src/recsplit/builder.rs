//! Settings of RecSplit beyond those of all kinds.

use super::{KindOptions, RecSplitKind, Simd};
use crate::{Builder, Error, RecSplit};
use warpset_core::recsplit::{Method, Remix, TreeShape};

impl RecSplit {
    /// Returns the default settings for building a function; [`build_from`](crate::Builder::build_from) takes the keys.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl<S> Builder<RecSplitKind, S> {
    /// Sets the keys in a leaf of the splitting trees, 2 to 24: larger leaves take less space and more time to build.
    /// Default: 12.
    pub fn leaf_size(mut self, leaf_size: u32) -> Self {
        self.options.leaf_size = leaf_size;
        self
    }

    /// Sets the fanouts of the first and second aggregation level. Default: those of [`Builder::tuned_fanouts`] for
    /// [`Method::Grouped`], those of the thesis for the other methods. If the counts of a large fanout do not fit one
    /// word, its splittings are searched by brute force:
    /// [`Estimate::brute_force_share`](crate::Estimate::brute_force_share). The largest fanouts would take years to
    /// build; [`Builder::estimate`] predicts it.
    pub fn fanouts(mut self, first: u32, second: u32) -> Self {
        self.options.fanouts = Some((first, second));
        self
    }

    /// Sets the search method of trial numbers, which is part of the function. Default: [`Method::Grouped`]; the others
    /// are those of the thesis.
    pub fn method(mut self, method: Method) -> Self {
        self.options.method = method;
        self
    }

    /// Sets the finaliser of trial hashes. Default: [`Remix::Bits32`]; the other is for comparison, and has no vectors.
    pub fn remix(mut self, remix: Remix) -> Self {
        self.options.remix = remix;
        self
    }

    /// Sets the vector instructions of the search. All give the same function. Default: [`Simd::Auto`].
    pub fn simd(mut self, simd: Simd) -> Self {
        self.options.simd = simd;
        self
    }

    /// Returns the shape of these settings.
    ///
    /// # Errors
    /// [`Error::InvalidShape`]; [`Error::InvalidParameter`].
    pub fn shape(&self) -> Result<TreeShape, Error> {
        self.options.shape()
    }
}

impl Builder {
    /// Sets the keys per value, above 0.75 and at most 1. Below 1 the function is perfect but not minimal, and smaller.
    /// Rounded to whole positions of a leaf; [`RecSplit::values`] returns the resulting bound. Default: 1.
    pub fn load_factor(mut self, load_factor: f64) -> Self {
        self.options.load_factor = load_factor;
        self
    }

    /// Builds a `k`-perfect function: up to `k` keys, 2 to 24, share a value; all values but one in each bucket have
    /// `k` keys. Replaces the leaf size and the load factor. Default: every key has its own value.
    pub fn keys_per_value(mut self, k: u32) -> Self {
        self.options.keys_per_value = Some(k);
        self
    }

    /// Returns the fanouts that [`Method::Grouped`] uses by default.
    pub const fn tuned_fanouts(leaf_size: u32) -> (u32, u32) {
        tuned_fanouts(leaf_size)
    }
}

impl Default for KindOptions {
    fn default() -> Self {
        Self {
            leaf_size: 12,
            fanouts: None,
            method: Method::Grouped,
            remix: Remix::Bits32,
            simd: Simd::Auto,
            load_factor: 1.0,
            keys_per_value: None,
        }
    }
}

impl KindOptions {
    /// Returns the shape of these options.
    pub(super) fn shape(&self) -> Result<TreeShape, Error> {
        if let Some(k) = self.keys_per_value {
            if !(2..=24).contains(&k) {
                let value = f64::from(k);
                return Err(Error::InvalidParameter { what: "number of keys for a value", value, allowed: "2 to 24" });
            }
            let tree = self.tree_shape(k)?;
            return Ok(tree.with_positions(1).unwrap_or(tree));
        }
        if !(self.load_factor > 0.75 && self.load_factor <= 1.0) {
            let value = self.load_factor;
            return Err(Error::InvalidParameter { what: "load factor", value, allowed: "above 0.75 and at most 1" });
        }
        let shape = self.tree_shape(self.leaf_size)?;
        // At most 24 / 0.75 = 32 positions.
        let positions = (f64::from(self.leaf_size) / self.load_factor).round() as u32;
        Ok(shape.with_positions(positions).unwrap_or(shape))
    }

    /// Returns the shape with these leaves, for a minimal function.
    fn tree_shape(&self, leaf_size: u32) -> Result<TreeShape, Error> {
        let thesis = TreeShape::thesis(leaf_size.clamp(2, 24), Method::BruteForce);
        let (first, second) = match (self.fanouts, self.method, thesis) {
            (Some(fanouts), ..) => fanouts,
            (None, Method::Grouped, _) => tuned_fanouts(leaf_size),
            (None, _, Some(shape)) => (shape.first_fanout(), shape.second_fanout()),
            (None, _, None) => (0, 0),
        };
        TreeShape::new(leaf_size, first, second, self.method).ok_or(Error::InvalidShape {
            leaf_size,
            first_fanout: first,
            second_fanout: second,
        })
    }
}

const fn tuned_fanouts(leaf_size: u32) -> (u32, u32) {
    match leaf_size {
        0..=4 => (4, 4),
        _ => (6, 4),
    }
}
