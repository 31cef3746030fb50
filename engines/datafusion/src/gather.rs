//! Aggregates in general: one structure per group, filled from rows and from partial results.

use std::fmt::Debug;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use warpset_base::key::Key;

use crate::blobs;
use crate::error::Cause;
use crate::keys::{self, Visitor};
use crate::rows::Rows;

/// State of an aggregate for one group.
pub(crate) trait Gather: Debug + Send + Sync + Sized + 'static {
    /// The aggregate's name in SQL.
    const NAME: &'static str;
    /// Whether `DISTINCT` changes nothing.
    const IGNORES_COPIES: bool;
    /// Names and types of the arguments after the first; all are optional.
    const PARAMETERS: &'static [(&'static str, DataType)] = &[];
    /// The parsed parameters.
    type Settings: Debug + Send + Sync + 'static;

    /// Whether the first argument can have this type.
    fn check_type(argument: &DataType) -> Result<(), Cause>;
    /// Parses the given parameters, which are cast to their types.
    fn settings(parameters: &[ScalarValue]) -> Result<Self::Settings, Cause>;
    /// Adds rows of the first argument.
    fn add(settings: &Self::Settings, slots: &mut Slots<Self>, values: &dyn Array, rows: &Rows) -> Result<(), Cause>;
    /// Adds a partial result.
    fn merge(settings: &Self::Settings, slot: &mut Option<Self>, partial: &[u8]) -> Result<(), Cause>;
    /// Returns the bytes of memory outside of the structure itself.
    fn memory_bytes(&self) -> usize;
    /// Returns the form that another machine merges.
    fn partial(&mut self, settings: &Self::Settings) -> Result<Vec<u8>, Cause>;
    /// Returns the result so far: a window asks repeatedly.
    fn result(&mut self, settings: &Self::Settings) -> Result<Vec<u8>, Cause>;
}

/// State that gathers keys.
pub(crate) trait OfKeys: Gather {
    /// Returns an empty state.
    fn empty() -> Self;
    /// Adds a key.
    fn insert<K: Key + Copy>(&mut self, settings: &Self::Settings, key: K) -> Result<(), Cause>;
    /// Adds keys.
    fn insert_bulk<K: Key + Copy>(&mut self, settings: &Self::Settings, keys: &[K]) -> Result<(), Cause>;
}

/// Implements [`Gather::add`] for aggregates of keys.
pub(crate) fn add_keys<G: OfKeys>(
    settings: &G::Settings,
    slots: &mut Slots<G>,
    values: &dyn Array,
    rows: &Rows,
) -> Result<(), Cause> {
    struct Add<'a, 'r, G: OfKeys> {
        settings: &'a G::Settings,
        slots: &'a mut Slots<G>,
        rows: &'a Rows<'r>,
    }

    impl<G: OfKeys> Visitor for Add<'_, '_, G> {
        type Output = Result<(), Cause>;

        fn visit<K: Key + Copy>(self, keys: &[K]) -> Result<(), Cause> {
            let Add { settings, slots, rows } = self;
            if rows.are_grouped() {
                return rows.try_for_each(|row, group| {
                    slots.change(group, |slot| slot.get_or_insert_with(G::empty).insert(settings, keys[row]))
                });
            }
            match &*rows.select(keys) {
                [] => Ok(()),
                keys => slots.change(0, |slot| slot.get_or_insert_with(G::empty).insert_bulk(settings, keys)),
            }
        }
    }

    keys::visit(values, Add { settings, slots, rows })?
}

/// Implements [`Gather::add`] for aggregates of partial results.
pub(crate) fn add_blobs<G: Gather>(
    settings: &G::Settings,
    slots: &mut Slots<G>,
    values: &dyn Array,
    rows: &Rows,
) -> Result<(), Cause> {
    let column = blobs::Column::of(values)?;
    rows.try_for_each(|row, group| match column.get(row) {
        None => Ok(()),
        Some(blob) => slots.change(group, |slot| G::merge(settings, slot, blob)),
    })
}

/// The states of all groups; `None` for a group without values.
#[derive(Debug)]
pub(crate) struct Slots<G> {
    groups: Vec<Option<G>>,
    /// Memory of the states.
    bytes: usize,
}

impl<G: Gather> Slots<G> {
    fn of(groups: usize) -> Slots<G> {
        let mut slots = Slots { groups: Vec::new(), bytes: 0 };
        slots.make_room(groups);
        slots
    }

    fn make_room(&mut self, groups: usize) {
        if self.groups.len() < groups {
            self.groups.resize_with(groups, || None);
        }
    }

    /// Changes the state of a group.
    pub(crate) fn change(
        &mut self,
        group: usize,
        change: impl FnOnce(&mut Option<G>) -> Result<(), Cause>,
    ) -> Result<(), Cause> {
        let size = |slot: &Option<G>| slot.as_ref().map_or(0, G::memory_bytes);
        let slot = &mut self.groups[group];
        let before = size(slot);
        let changed = change(slot);
        self.bytes = self.bytes - before + size(slot);
        changed
    }

    fn take(&mut self, emit: EmitTo) -> Vec<Option<G>> {
        let taken = emit.take_needed(&mut self.groups);
        self.bytes -= taken.iter().flatten().map(G::memory_bytes).sum::<usize>();
        taken
    }

    fn size(&self) -> usize {
        self.bytes + self.groups.capacity() * size_of::<Option<G>>()
    }

    fn merge(&mut self, settings: &G::Settings, states: &[ArrayRef], groups: Option<&[usize]>) -> Result<(), Cause> {
        let states = states[0].as_binary::<i64>();
        Rows::of(states, groups, None)
            .try_for_each(|row, group| self.change(group, |slot| G::merge(settings, slot, states.value(row))))
    }
}

/// The aggregate of one group.
#[derive(Debug)]
pub(crate) struct OneGroup<G: Gather> {
    settings: G::Settings,
    slots: Slots<G>,
}

impl<G: Gather> OneGroup<G> {
    pub(crate) fn new(settings: G::Settings) -> OneGroup<G> {
        OneGroup { settings, slots: Slots::of(1) }
    }
}

impl<G: Gather> Accumulator for OneGroup<G> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let rows = Rows::of(&values[0], None, None);
        G::add(&self.settings, &mut self.slots, &values[0], &rows).map_err(|cause| cause.of(G::NAME))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.slots.merge(&self.settings, states, None).map_err(|cause| cause.of(G::NAME))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut partial = None;
        let settings = &self.settings;
        let fill = |slot: &mut Option<G>| {
            slot.as_mut().map(|structure| structure.partial(settings)).transpose().map(|bytes| partial = bytes)
        };
        self.slots.change(0, fill).map_err(|cause| cause.of(G::NAME))?;
        Ok(vec![ScalarValue::LargeBinary(partial)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut result = None;
        let settings = &self.settings;
        let fill = |slot: &mut Option<G>| {
            slot.as_mut().map(|structure| structure.result(settings)).transpose().map(|bytes| result = bytes)
        };
        self.slots.change(0, fill).map_err(|cause| cause.of(G::NAME))?;
        Ok(blobs::scalar(result))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.slots.size()
    }
}

/// Builds an array of the forms that other machines merge.
fn partial_results<G: Gather>(settings: &G::Settings, slots: Vec<Option<G>>) -> Result<ArrayRef, Cause> {
    let partial: Result<Vec<_>, Cause> =
        slots.into_iter().map(|slot| slot.map(|mut structure| structure.partial(settings)).transpose()).collect();
    Ok(blobs::partial_results(partial?))
}

/// The aggregate of many groups.
#[derive(Debug)]
pub(crate) struct ManyGroups<G: Gather> {
    settings: G::Settings,
    slots: Slots<G>,
}

impl<G: Gather> ManyGroups<G> {
    pub(crate) fn new(settings: G::Settings) -> ManyGroups<G> {
        ManyGroups { settings, slots: Slots::of(0) }
    }
}

impl<G: Gather> GroupsAccumulator for ManyGroups<G> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.slots.make_room(total);
        let rows = Rows::of(&values[0], Some(groups), filter);
        G::add(&self.settings, &mut self.slots, &values[0], &rows).map_err(|cause| cause.of(G::NAME))
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.slots.make_room(total);
        self.slots.merge(&self.settings, states, Some(groups)).map_err(|cause| cause.of(G::NAME))
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let slots = self.slots.take(emit).into_iter();
        let results: Result<Vec<_>, Cause> =
            slots.map(|slot| slot.map(|mut structure| structure.result(&self.settings)).transpose()).collect();
        results.and_then(blobs::results).map_err(|cause| cause.of(G::NAME))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let partial = partial_results(&self.settings, self.slots.take(emit)).map_err(|cause| cause.of(G::NAME))?;
        Ok(vec![partial])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        // Each row is a group of its own.
        let mut slots = Slots::of(values[0].len());
        let groups: Vec<usize> = (0..values[0].len()).collect();
        let rows = Rows::of(&values[0], Some(&groups), filter);
        let partial = G::add(&self.settings, &mut slots, &values[0], &rows)
            .and_then(|()| partial_results(&self.settings, slots.take(EmitTo::All)))
            .map_err(|cause| cause.of(G::NAME))?;
        Ok(vec![partial])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.slots.size()
    }
}
