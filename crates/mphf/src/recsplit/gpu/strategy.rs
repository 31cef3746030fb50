//! Order in which a search processes the buckets.

/// Order in which a device searches the trees of buckets. Words and kernels are the same; the number of launches and
/// the work of a launch differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Lists of the nodes of all buckets, one per level and search method; a launch solves a list: some 30 launches,
    /// whatever the number of buckets.
    #[default]
    AllBuckets,
    /// Bucket by bucket, as in D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis,
    /// KIT 2022, section 5.10. Eight threads of the host queue buckets in turn on 128 streams. On its stream a bucket
    /// has some launches per level of its tree, with one block per node. For comparison: some ten launches per bucket
    /// take about 20 microseconds, and every level waits for a bucket's longest search. `docs/performance/recsplit.md`
    /// has figures.
    ///
    /// Differences in the thesis: its kernels move the keys of a splitting to its children at the end of the search,
    /// here another launch does; it has a launch for each node of the higher levels; a block of 512 threads takes a
    /// leaf, here several blocks with as many threads in total share it; its blocks have 64 threads in the higher
    /// levels, here 256; it copies keys and numbers of each bucket over the bus, and encodes on the host.
    ///
    /// Progress is reported when all buckets have been searched. The driver has 8 work queues unless
    /// `CUDA_DEVICE_MAX_CONNECTIONS` is set before the device is opened; the thesis takes 32.
    #[cfg(feature = "papers")]
    PerBucket,
}
