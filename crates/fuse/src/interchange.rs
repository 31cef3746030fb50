//! Filters of other programs: the arrays of the crate `xorf`, and the bytes of the C header `xor_singleheader`.
//!
//! Their hash of a 64-bit integer, its slots and its fingerprint are ours ([`warpset_core::fuse`]), so an array answers
//! the same here and there, and nothing of it is computed again. They have three-wise filters of one graph; four-wise
//! and sharded filters are ours alone.

mod bincode;
mod c_header;

pub use bincode::Bincode;
pub use c_header::CWidth;

use warpset_base::words::AlignedWords;

use crate::width::Width;
use crate::{Arity, BinaryFuse, Error, Form, Layout};

/// Parameters of a filter of the crate `xorf`, with the names that they have there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct XorfDescriptor {
    /// The seed of the keys' hash.
    pub seed: u64,
    /// Slots of a segment.
    pub segment_length: u32,
    /// One less.
    pub segment_length_mask: u32,
    /// Slots that can be the first one of a key.
    pub segment_count_length: u32,
}

/// A filter of the crate `xorf`, versions 0.11 to 0.13: its parameters, and the fingerprints. Under the feature `serde`
/// it is in formats of serde what `xorf`'s type is.
///
/// ```
/// use warpset_fuse::{BinaryFuse8, XorfArray};
///
/// let ours = BinaryFuse8::builder().build_from(&[2u64, 3, 5])?;
/// let XorfArray { descriptor, fingerprints } = ours.to_xorf()?;
/// // let theirs = xorf::BinaryFuse8 { descriptor: xorf::Descriptor { … }, fingerprints: fingerprints.into() };
/// let again = BinaryFuse8::from_xorf(&XorfArray { descriptor, fingerprints })?;
/// assert!(again.contains(5u64) && again.fingerprints() == ours.fingerprints());
/// # Ok::<(), warpset_fuse::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(serialize = "F: serde::Serialize", deserialize = "F: serde::Deserialize<'de>"))
)]
pub struct XorfArray<F: Width> {
    /// The parameters.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub descriptor: XorfDescriptor,
    /// The fingerprints, slot by slot.
    #[cfg_attr(feature = "serde", serde(with = "crate::serde::fingerprints"))]
    pub fingerprints: Vec<F>,
}

/// A three-wise graph as other programs describe it.
struct Published {
    seed: u64,
    segment_length: u64,
    starts: u64,
    /// Number of keys, if the array records it.
    keys: Option<u64>,
}

impl Published {
    /// Returns the layout of a filter in an array of `slots` slots.
    fn layout<F: Width>(&self, slots: u64) -> Result<Layout, Error> {
        let invalid = |what, value| Err(Error::InvalidArray { what, value });
        if !self.segment_length.is_power_of_two() {
            return invalid("the length of a segment", self.segment_length);
        }
        let segment_bits = self.segment_length.ilog2().into();
        let layout = Layout::checked(F::BITS, Arity::Three, 0, self.seed, self.starts, segment_bits);
        let layout = layout.map_err(|(what, value)| Error::InvalidArray { what, value })?;
        if layout.graph.starts == 0 {
            return invalid("the number of first slots", 0);
        }
        if slots < layout.slots() {
            return invalid("the number of fingerprints", slots);
        }
        match self.keys {
            Some(keys) if keys > layout.slots() => invalid("the number of keys", keys),
            Some(keys) => Ok(Layout { keys, ..layout }),
            None => Ok(Layout { keys: (layout.slots() as f64 / 1.125) as u64, ..layout }),
        }
    }
}

impl<F: Width> BinaryFuse<F> {
    /// Returns the filter's parameters under the names of other programs.
    fn published(&self) -> Result<XorfDescriptor, Error> {
        let layout = self.layout();
        let refuse = |what| Err(Error::NotInterchangeable { what });
        match (layout.arity(), layout.form()) {
            _ if layout.graph.starts == 0 => refuse("empty"),
            (Arity::Four, _) => refuse("four-wise"),
            (_, Form::Sharded) => refuse("sharded"),
            (Arity::Three, Form::OneGraph) => Ok(XorfDescriptor {
                seed: layout.seed(),
                segment_length: layout.graph.segment(),
                segment_length_mask: layout.graph.segment() - 1,
                segment_count_length: layout.graph.starts,
            }),
        }
    }

    /// Returns a filter of these fingerprints; what an array has beyond the slots is left out, as no key has it.
    fn with_fingerprints(
        layout: Layout,
        fill: impl FnOnce(&mut [F]) -> Result<(), Error>,
    ) -> Result<BinaryFuse<F>, Error> {
        let mut words = AlignedWords::zeroed(layout.words())?;
        fill(&mut bytemuck::cast_slice_mut(words.as_mut_slice())[..layout.slots() as usize])?;
        Ok(BinaryFuse::from_parts(layout, words))
    }

    /// Converts this filter to one of `xorf`, which answers the same for keys of 64 bits.
    ///
    /// # Errors
    /// [`Error::NotInterchangeable`] if it is four-wise, sharded or empty.
    pub fn to_xorf(&self) -> Result<XorfArray<F>, Error> {
        Ok(XorfArray { descriptor: self.published()?, fingerprints: self.fingerprints().to_vec() })
    }

    /// Returns a filter of `xorf`, which answers the same for keys of 64 bits.
    ///
    /// # Errors
    /// [`Error::InvalidArray`] if it cannot be one; [`Error::OutOfMemory`].
    pub fn from_xorf(array: &XorfArray<F>) -> Result<BinaryFuse<F>, Error> {
        let layout = array.descriptor.layout::<F>(array.fingerprints.len() as u64)?;
        BinaryFuse::with_fingerprints(layout, |slots| {
            slots.copy_from_slice(&array.fingerprints[..slots.len()]);
            Ok(())
        })
    }
}

impl XorfDescriptor {
    /// Returns the layout of a filter with these parameters in an array of `slots` slots.
    fn layout<F: Width>(&self, slots: u64) -> Result<Layout, Error> {
        let published = Published {
            seed: self.seed,
            segment_length: self.segment_length.into(),
            starts: self.segment_count_length.into(),
            keys: None,
        };
        let layout = published.layout::<F>(slots)?;
        if self.segment_length_mask != self.segment_length - 1 {
            return Err(Error::InvalidArray { what: "the mask of segments", value: self.segment_length_mask.into() });
        }
        Ok(layout)
    }
}

#[cfg(test)]
mod tests;
