//! How a search goes through the buckets.

/// In which order a device searches the trees of buckets. The words are the same, and so are the kernels; what differs
/// is how many launches there are, and what a launch has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// The nodes of all buckets stand in lists, one for each level and way of searching, and a launch solves a list:
    /// some 30 launches, whatever the number of buckets.
    #[default]
    AllBuckets,
    /// Bucket by bucket, as D. Bez does it ("Perfect Hash Function Generation on the GPU with RecSplit", master's
    /// thesis, KIT 2022, section 5.10): 128 streams, on which eight threads of the host queue buckets in turn; on
    /// its stream a bucket has some launches for each level of its tree, with one block per node. For comparison:
    /// some ten launches per bucket take about 20 microseconds, and a bucket's longest search is waited for on
    /// every level. `docs/performance/recsplit.md` has figures.
    ///
    /// What the thesis does differently: its kernels move the keys of a splitting to its children at the end of the
    /// search, where here another launch does; it has a launch for each node of the higher levels; a block of 512
    /// threads takes a leaf, where here several blocks with as many threads share it; its blocks have 64 threads in
    /// the higher levels, here they have 256; it brings keys and numbers of each bucket over the bus, and encodes on
    /// the host.
    ///
    /// Progress is told when all buckets have been searched. The driver has 8 work queues unless
    /// `CUDA_DEVICE_MAX_CONNECTIONS` is set before the device is opened; the thesis takes 32.
    #[cfg(feature = "papers")]
    PerBucket,
}
