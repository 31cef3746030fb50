//! One row of results, as `bench` writes it and `report` reads it.

pub mod file;
pub mod show;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Parameters of a row: plain words to numbers and strings.
pub type Params = Map<String, Value>;

/// One measured operation. A field is `None`, and left out of files, where it does not apply.
///
/// A row of ours names the fastest peer that did the same work in the same run. Each peer's own row
/// is there too, with its name and version as parameter `implementation`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// `bloom`, `quotient`, … or `machine` for the limits.
    pub structure: String,
    /// Operation: `insert`, `contains hit`, `union`, …
    pub operation: String,
    /// `cpu`, `cuda` or `emulator`.
    pub backend: String,
    /// The processor or GPU.
    #[serde(default)]
    pub device: String,
    /// Items that the operation took.
    pub n: u64,
    /// Variant, sizes, threads, input.
    pub params: Params,
    /// Time of the operation: the median of the repeats, or the least with `--least`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// `n / seconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items_per_second: Option<f64>,
    /// Bytes that the operation has to read and write at the least, over its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_second: Option<f64>,
    /// Memory of the structure over the items in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bits_per_item: Option<f64>,
    /// Measured false-positive rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fpr: Option<f64>,
    /// Rate over the limit that was measured in this run for the same memory access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_fraction: Option<f64>,
    /// The fastest peer for the same work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Our rate over that peer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_ratio: Option<f64>,
    /// Whether the answers of this very operation were verified.
    pub checked: bool,
}

impl Record {
    /// Makes a row without results; the session fills in `device` and `backend`.
    pub fn new(structure: &str, operation: &str, n: usize) -> Self {
        Self {
            structure: structure.into(),
            operation: operation.into(),
            backend: "cpu".into(),
            device: String::new(),
            n: n as u64,
            params: Params::new(),
            seconds: None,
            items_per_second: None,
            bytes_per_second: None,
            bits_per_item: None,
            fpr: None,
            limit_fraction: None,
            peer: None,
            peer_ratio: None,
            checked: false,
        }
    }

    /// Adds a parameter.
    pub fn param(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.params.insert(name.into(), value.into());
        self
    }

    /// Sets the name of the implementation: a variant of ours, or a peer.
    pub fn by(self, name: impl Into<String>, peer: bool) -> Self {
        self.param(if peer { "implementation" } else { "variant" }, name.into())
    }

    /// Sets the time, and with it the rate.
    pub fn time(mut self, seconds: f64) -> Self {
        self.seconds = Some(seconds);
        self.items_per_second = (seconds > 0.0).then(|| self.n as f64 / seconds);
        self
    }

    /// Sets the rate of bytes, once the time is known, and its part of what copying reaches.
    pub fn bytes(mut self, bytes: usize, copied_per_second: Option<f64>) -> Self {
        self.bytes_per_second = self.seconds.filter(|&seconds| seconds > 0.0).map(|seconds| bytes as f64 / seconds);
        self.limit_fraction = self.bytes_per_second.zip(copied_per_second).map(|(rate, limit)| rate / limit);
        self
    }

    /// Returns a parameter as text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.params.get(name)?.as_str()
    }

    /// Returns a parameter as a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.params.get(name)?.as_f64()
    }

    /// Returns the variant or peer, with the parameters that distinguish rows of one study.
    pub fn name(&self) -> String {
        let name = self.text("variant").or(self.implementation()).unwrap_or_default();
        let kept = if self.text("duplicates") == Some("kept") { ", kept" } else { "" };
        format!("{name}{kept}")
    }

    /// Whether both measured one thing, perhaps with different results.
    fn is_repeat_of(&self, other: &Record) -> bool {
        let work = |row: &Record| {
            let mut params = row.params.clone();
            params.retain(|name, _| !RESULTS.contains(&name.as_str()));
            (row.structure.clone(), row.operation.clone(), row.backend.clone(), row.device.clone(), row.n, params)
        };
        work(self) == work(other)
    }

    /// Returns the peer's name, for a row of a peer.
    pub fn implementation(&self) -> Option<&str> {
        self.text("implementation")
    }
}

/// Fills in, for each row of ours, the fastest peer that did the same work and the ratio to it; none where there is no
/// such peer.
pub fn compare_with_peers(records: &mut [Record]) {
    let peers: Vec<Record> = records.iter().filter(|row| row.implementation().is_some()).cloned().collect();
    for row in records.iter_mut().filter(|row| row.implementation().is_none()) {
        let fastest = ratios(row, &peers).into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        (row.peer, row.peer_ratio) = fastest.map(|(peer, ratio)| (peer.to_owned(), ratio)).unzip();
    }
}

/// Parameters that say who did the work, how, and what came out, not which work it was.
const NOT_WORK: [&str; 6] = ["implementation", "hashes", "truth", "said", "false_positives", "expected"];

/// Parameters that are measured.
const RESULTS: [&str; 2] = ["hashes_per_key", "hashes_per_second"];

/// Memory of a peer over ours up to which it still is a peer.
const AS_SMALL: f64 = 1.02;

/// Returns the peers that did the same work as `row`, each with our rate over its rate.
///
/// A peer's row did the same work if it has the operation and the number of items of ours, and each of its parameters,
/// its own name and settings aside, is one of ours with the same value.
pub fn ratios<'a>(row: &Record, peers: impl IntoIterator<Item = &'a Record>) -> Vec<(&'a str, f64)> {
    let same_work = |peer: &Record| {
        peer.structure == row.structure
            && peer.operation == row.operation
            && peer.backend == row.backend
            && peer.n == row.n
            && peer
                .params
                .iter()
                .all(|(name, value)| NOT_WORK.contains(&name.as_str()) || row.params.get(name) == Some(value))
    };
    let ratio = |peer: &'a Record| {
        let name = peer.implementation()?;
        let is_peer = same_work(peer) && is_like(row, peer);
        is_peer.then_some((name, row.items_per_second? / peer.items_per_second?))
    };
    peers.into_iter().filter_map(ratio).collect()
}

/// Whether a user could take `peer` in place of what `row` measured: it needs no more memory, and keeps the order of
/// the keys where ours does.
fn is_like(row: &Record, peer: &Record) -> bool {
    match (row.structure.as_str(), row.bits_per_item, peer.bits_per_item) {
        // Sets that answer without false positives are taken for what they do, whatever their memory.
        ("static", ..) => true,
        ("lsm", ..) => peer.implementation() != Some("HashMap"),
        (_, Some(ours), Some(theirs)) => theirs <= AS_SMALL * ours,
        // The space of a perfect hash function is what one pays its time for.
        ("recsplit", ours, None) => ours.is_none(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_peer_of_the_same_work_counts() {
        let row = |name: Option<&str>, threads: u32, seconds: f64| {
            let row = Record::new("bloom", "insert", 100).param("threads", threads).time(seconds);
            name.map_or(row.clone().param("variant", "blocked"), |name| row.param("implementation", name))
        };
        let mut rows =
            [row(None, 1, 1.0), row(Some("slow"), 1, 4.0), row(Some("fast"), 1, 2.0), row(Some("other"), 2, 0.1)];
        compare_with_peers(&mut rows);
        assert_eq!((rows[0].peer.as_deref(), rows[0].peer_ratio), (Some("fast"), Some(2.0)));
        assert!(rows[1..].iter().all(|row| row.peer.is_none()));
    }
    #[test]
    fn peers_are_as_small_and_as_ordered() {
        let row = |structure: &str, name: Option<&str>, bits: Option<f64>| {
            let mut row = Record::new(structure, "get", 100).time(1.0).by(name.unwrap_or("ours"), name.is_some());
            row.bits_per_item = bits;
            row
        };
        let is_peer = |structure: &str, theirs: Option<f64>| {
            !ratios(&row(structure, None, Some(1.6)), &[row(structure, Some("a crate"), theirs)]).is_empty()
        };
        assert!(is_peer("recsplit", Some(1.62)) && !is_peer("recsplit", Some(2.8)) && !is_peer("recsplit", None));
        assert!(is_peer("bloom", None) && !is_peer("bloom", Some(2.8)));
        let ordered = ["BTreeMap", "HashMap"].map(|name| row("lsm", Some(name), None));
        let names: Vec<&str> = ratios(&row("lsm", None, None), &ordered).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["BTreeMap"]);
    }
}
